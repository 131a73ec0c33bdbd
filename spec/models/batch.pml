/*
 * An echo: two endpoints, a ring each way, one bell per endpoint. Both sides batch: they publish
 * finished frames and give back released space when they like, but all of it before they wait
 * ([ring.publish_all], [ring.release_all]).
 *
 * Endpoint A writes all requests and then reads the replies; endpoint B answers one at a time. A
 * either only waits for space, or goes on draining its inbox while it does (one bell serves both).
 * The number of requests is exactly what the two rings and B together can hold, so that a single
 * unit or frame that is held back over a wait stops everything.
 */
#define ENDS 2
#define RINGS 2
#ifndef CAP
#define CAP 4
#endif
#ifndef SPURIOUS
#define SPURIOUS 0
#endif
#define A 0
#define B 1
#define REQUESTS 0
#define REPLIES 1
/* A reads replies and writes requests, B the other way round: DATA(0) SPACE(0) DATA(1) SPACE(1). */
#define OWNER(k) ((((k) + 1) / 2) % 2 == 0 -> B : A)
#define ROOM (CAP - 1)
#define N (ROOM + ROOM + 1)

#include "wake.inc"

/* [wait.writer_asks] Not a unit more: the mutation asks for two, and for no more than its tail. */
#ifdef MUT_GREEDY_CAPPED
#define space_target(t) minus(t, ROOM - 2)
#else
#define space_target(t) minus(plus(t, 1), ROOM)
#endif

#define full(t, h) (diff(t, h) + 1 > ROOM)

byte answered, received;

/* [ring.batch] One store of the cursor makes everything before it visible, if there is anything. */
inline publish(r, t) {
    if
    :: t != tail[r] -> store_and_wake(tail[r], t, DATA(r))
    :: else
    fi
}

inline give_back(r, h) {
    if
    :: h != head[r] -> store_and_wake(head[r], h, SPACE(r))
    :: else
    fi
}

inline put(r, t, what) {
    /* [ring.publish] Never the cursor first. */
#ifdef MUT_CURSOR_BEFORE_PAYLOAD
    store_and_wake(tail[r], plus(t, 1), DATA(r));
#endif
    place(r, t, 1, what);
    t = plus(t, 1);
    if
    :: publish(r, t)
    :: true                                             /* Holds it back: a batch. */
    fi
}

inline get(r, h, expected) {
    take(r, h, size, what);
    d_step {
        assert(what == expected && size == 1);
        what = 0; size = 0;
        h = plus(h, 1)
    };
    if
    :: give_back(r, h)
    :: true                                             /* Holds the space back. */
    fi
}

proctype requester() {
    byte t = START, h = START, peer_t = START, peer_h = START;
    byte sent, w, got, i, size, what;
    bool drains;

    if
    :: drains = true
    :: true
    fi;

    do
    :: sent < N ->
        peer_h = head[REQUESTS];
        assert(diff(t, peer_h) <= CAP);
        if
        :: !full(t, peer_h) ->
            sent++;
            put(REQUESTS, t, sent)
        :: else ->
#ifndef MUT_A_HOLDS_BATCH
            publish(REQUESTS, t);
#endif
#ifndef MUT_A_HOLDS_HEAD
            give_back(REPLIES, h);
#endif
            load_bell(A);
            arm(SPACE(REQUESTS), space_target(t));
            if
            :: drains -> arm(DATA(REPLIES), plus(h, 1)); peer_t = tail[REPLIES]
            :: else
            fi;
            peer_h = head[REQUESTS];
            if
            :: full(t, peer_h) && (!drains || peer_t == h) -> wait(A)
            :: else
            fi;
            peer_h = 0;
            disarm(SPACE(REQUESTS));
            if
            :: drains ->
                disarm(DATA(REPLIES));
                peer_t = tail[REPLIES];
                do
                :: peer_t != h ->
                    received++;
                    get(REPLIES, h, received)
                :: else -> break
                od
            :: else
            fi
        fi
    :: else -> break
    od;
    peer_h = 0;

    do
    :: received < N ->
        peer_t = tail[REPLIES];
        assert(diff(peer_t, h) <= CAP);
        if
        :: peer_t != h ->
            do
            :: peer_t != h ->
                received++;
                get(REPLIES, h, received)
            :: else -> break
            od
        :: else ->
#ifndef MUT_A_HOLDS_BATCH
            publish(REQUESTS, t);
#endif
#ifndef MUT_A_HOLDS_HEAD
            give_back(REPLIES, h);
#endif
            load_bell(A);
            arm(DATA(REPLIES), plus(h, 1));
            peer_t = tail[REPLIES];
            if
            :: peer_t == h -> wait(A)
            :: else
            fi;
            disarm(DATA(REPLIES))
        fi
    :: else -> break
    od;
    head[REPLIES] = h                                   /* Nobody waits for this space any more. */
}

proctype echo() {
    byte t = START, h = START, peer_t = START, peer_h = START;
    byte w, got, i, size, what;

    do
    :: answered < N ->
        if
        :: peer_t == h ->
            peer_t = tail[REQUESTS];
            assert(diff(peer_t, h) <= CAP);
            if
            :: peer_t == h ->
#ifndef MUT_B_HOLDS_BATCH
                publish(REPLIES, t);
#endif
#ifndef MUT_B_HOLDS_HEAD
                give_back(REQUESTS, h);
#endif
                load_bell(B);
                arm(DATA(REQUESTS), plus(h, 1));
                peer_t = tail[REQUESTS];
                if
                :: peer_t == h -> wait(B)
                :: else
                fi;
                disarm(DATA(REQUESTS))
            :: else
            fi
        :: else ->
            answered++;
            get(REQUESTS, h, answered);
            do
            :: peer_h = head[REPLIES];
                if
                :: !full(t, peer_h) -> break
                :: else
                fi;
#ifndef MUT_B_HOLDS_BATCH
                publish(REPLIES, t);
#endif
#if !defined(MUT_B_HOLDS_HEAD) && !defined(MUT_B_HOLDS_HEAD_FOR_SPACE)
                give_back(REQUESTS, h);
#endif
                load_bell(B);
                arm(SPACE(REPLIES), space_target(t));
                peer_h = head[REPLIES];
                if
                :: full(t, peer_h) -> wait(B)
                :: else
                fi;
                disarm(SPACE(REPLIES))
            od;
            put(REPLIES, t, answered)
        fi
    :: else -> break
    od;
    publish(REPLIES, t);
    head[REQUESTS] = h                                  /* Nobody waits for this space any more. */
}

init {
    byte i;
    begin();
    atomic { run requester(); run echo() };
    _nr_pr == 1;
    assert(answered == N && received == N);
    assert(head[0] == tail[0] && head[1] == tail[1]);
    assert(wants[0] + wants[1] + wants[2] + wants[3] == 0)
}
