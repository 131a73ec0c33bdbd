/*
 * An event loop that reads asynchronously and writes, blocking or not, on one endpoint: several
 * waits share a bell, its one asynchronous sleep, and their `wants` words.
 *
 * Endpoint A belongs to one thread, the loop: what it does between two waits is one process here.
 * A blocking write that waits for room may take what arrives into the inbox ([port.inbox]); then it
 * asks for the same word as the read that is outstanding. A read may be given up; its sleep cannot,
 * and stays on the bell. Nothing ends a sleep but a ring: neither a slice nor a timer.
 *
 * The peer B publishes requests at any time, and takes replies; there is room for one at a time.
 */
#define ENDS 2
#define RINGS 2
#define CAP 4
#define SPURIOUS 1
#define A 0
#define B 1
#define REQUESTS 0
#define REPLIES 1
/* A reads requests and writes replies: DATA(0) is A's, SPACE(0) B's, DATA(1) B's, SPACE(1) A's. */
#define OWNER(k) ((k) == 0 || (k) == 3 -> A : B)
#define N 2
#define M 2

#include "wake.inc"

byte got_requests, got_replies;

/* How many waits of A need this word: a private count, and never above two. */
byte needed[2 * RINGS];

/* A's one asynchronous sleep: begun, and its end not noticed yet. */
bool asleep;
/* What of A waits on the loop. */
bool reading, writing;

inline ask(k, target) {
    d_step { needed[k]++; wants[k] = want(target); armed[k] = true }
}

/* [wait.disarm] Unless another wait of the same endpoint still needs that word. */
inline unask(k) {
    d_step {
        needed[k]--;
#ifdef MUT_CLEAR_SHARED
        wants[k] = 0;
#elif !defined(MUT_NO_DISARM)
        if
        :: needed[k] == 0 -> wants[k] = 0
        :: else
        fi;
#endif
        if
        :: needed[k] == 0 -> armed[k] = false
        :: else
        fi
    }
}

/* The read on the loop ends: because its sleep did, or because the inbox has something for it. */
inline rouse_read() {
    if
    :: reading -> unask(DATA(REQUESTS)); reading = false
    :: else
    fi
}

/* Of a wait on the loop: the bell, before its word is armed. One sleep serves all, with the value
 * of the bell that it began with: if that has changed, the sleep is about to end. */
inline load_bell_later() {
    if
    :: !asleep -> moved[A] = moved[A] & ~LATER
    :: else
    fi
}

/* [wait.async_one] */
inline sleep_later() {
    if
    :: !asleep ->
        asleep = true;
        d_step {
            if
            :: !(moved[A] & LATER) -> waiters[A] = waiters[A] | LATER
            :: else
            fi
        }
    :: else
    fi
}

#define sleep_is_over (asleep && !(waiters[A] & LATER))

inline fill_inbox() {
    do
    :: t != h ->
        take(REQUESTS, h, size, what);
        d_step {
            got_requests++;
            assert(what == got_requests);
            h = plus(h, size);
            what = 0; size = 0
        }
    :: else -> break
    od;
    t = 0;
    head[REQUESTS] = h                                  /* B never waits for this space. */
}

proctype loop() {
    byte t, h = START, tw = START, peer_h;
    byte written, w, got, i, size, what;
    bool drains, given_up;

    do
    /* The read: looks, and else waits on the loop. */
    :: got_requests < N && !reading && !sleep_is_over ->
        t = tail[REQUESTS];
        if
        :: t != h -> fill_inbox()
        :: else ->
            load_bell_later();
            ask(DATA(REQUESTS), plus(h, 1));
            reading = true;
            t = tail[REQUESTS];
            if
            :: t != h -> unask(DATA(REQUESTS)); reading = false
            :: else -> sleep_later()
            fi;
            t = 0
        fi

    /* Its caller has no more time, once. The sleep stays on the bell. */
    :: reading && !given_up ->
        given_up = true;
        reading = false;
#ifdef MUT_GIVEN_UP_ARMED
        d_step { needed[DATA(REQUESTS)]--; armed[DATA(REQUESTS)] = false }
#else
        unask(DATA(REQUESTS))
#endif

    /* The sleep ends: whoever shared it looks again. */
    :: sleep_is_over ->
        asleep = false;
        moved[A] = moved[A] | LATER;
#ifdef MUT_ROUSE_ONE
        if
        :: reading -> rouse_read()
        :: !reading && writing -> unask(SPACE(REPLIES)); writing = false
        :: else
        fi
#else
        rouse_read();
        if
        :: writing -> unask(SPACE(REPLIES)); writing = false
        :: else
        fi
#endif

    :: written < M && !writing ->
        peer_h = head[REPLIES];
        if
        :: peer_h == tw ->
            written++;
            place(REPLIES, tw, 1, written);
            tw = plus(tw, 1);
            store_and_wake(tail[REPLIES], tw, DATA(REPLIES))
        :: peer_h != tw ->
            /* Waits on the loop. */
            load_bell_later();
            ask(SPACE(REPLIES), tw);
            writing = true;
            peer_h = head[REPLIES];
            if
            :: peer_h == tw -> unask(SPACE(REPLIES)); writing = false
            :: else -> sleep_later()
            fi
        :: peer_h != tw ->
            /* Blocks; the loop does not turn before it is through. */
            if
            :: drains = true
            :: true
            fi;
            do
            :: load_bell(A);
                ask(SPACE(REPLIES), tw);
                if
                :: drains -> ask(DATA(REQUESTS), plus(h, 1)); t = tail[REQUESTS]
                :: else -> t = h
                fi;
                peer_h = head[REPLIES];
                if
                :: peer_h != tw && t == h -> wait(A)
                :: else
                fi;
                t = 0;
                unask(SPACE(REPLIES));
                if
                :: drains ->
                    unask(DATA(REQUESTS));
                    t = tail[REQUESTS];
                    if
                    :: t != h ->
                        fill_inbox()
#ifndef MUT_SILENT_INBOX
                        ; rouse_read()
#endif
                    :: else -> t = 0
                    fi
                :: else
                fi;
                moved[A] = moved[A] | ME;
                peer_h = head[REPLIES];
                if
                :: peer_h == tw -> break
                :: else
                fi
            od;
            drains = false
        fi;
        peer_h = 0
    :: got_requests == N && written == M && !reading && !writing -> break
    od
}

proctype peer() {
    byte t = START, h = START, peer_t, sent, w, got, i, size, what;
    do
    :: sent < N ->
        sent++;
        place(REQUESTS, t, 1, sent);
        t = plus(t, 1);
        store_and_wake(tail[REQUESTS], t, DATA(REQUESTS))
    :: got_replies < M ->
        do
        :: peer_t = tail[REPLIES];
            if
            :: peer_t != h -> break
            :: else
            fi;
            load_bell(B);
            arm(DATA(REPLIES), plus(h, 1));
            peer_t = tail[REPLIES];
            if
            :: peer_t == h -> wait(B)
            :: else
            fi;
            disarm(DATA(REPLIES))
        od;
        peer_t = 0;
        take(REPLIES, h, size, what);
        d_step {
            got_replies++;
            assert(what == got_replies);
            h = plus(h, size);
            what = 0; size = 0
        };
        store_and_wake(head[REPLIES], h, SPACE(REPLIES))
    :: sent == N && got_replies == M -> break
    od
}

init {
    byte i;
    begin();
    atomic { run loop(); run peer() };
    _nr_pr == 1;
    assert(got_requests == N && got_replies == M);
    assert(needed[DATA(REQUESTS)] + needed[SPACE(REPLIES)] == 0);
    assert(wants[0] + wants[1] + wants[2] + wants[3] == 0)
}
