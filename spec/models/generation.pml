/*
 * An endpoint that comes back: its owner dies, its peer makes the endpoint vacant again, and
 * another owner attaches.
 *
 * Endpoint E has a ring each way with its peer P. The first owner writes and reads, and dies at any
 * step. P finds that at the end of a slice. When it has seen the final state and knows that the
 * owner is gone, it reads what was published, makes E vacant, with the next generation, and may
 * write at once. The next owner attaches at any time. The last one lives.
 *
 * SUPERVISED adds a supervisor of the first owner, who marks E failed, perhaps late; and an owner
 * may close. To keep that small, each owner there has one message for P or from P, not both.
 *
 * What each generation has written, and what P has written for it, are numbers of their own, so
 * that a message of another generation shows.
 */
#define ENDS 2
#define RINGS 2
#define CAP 2
#define SPURIOUS 0
#define E 0
#define P 1
#define OUT 0
#define BACK 1
/* E writes OUT and reads BACK: DATA(OUT) is P's, SPACE(OUT) and DATA(BACK) E's, SPACE(BACK) P's. */
#define OWNER(k) ((((k) + 1) / 2) % 2 == 0 -> P : E)
#define ROOM 1
#ifndef OWNERS
#define OWNERS 2
#endif
#define LAST (OWNERS - 1)
/* What an owner writes, and what P writes for it, at most; the last owner and P write all of it. */
#ifdef SUPERVISED
#define N(g) (g == 0 -> 1 : 0)
#define M(g) (g == LAST -> 1 : 0)
#else
#ifndef FIRST
#define FIRST 2
#endif
#define N(g) (g == LAST -> 1 : FIRST)
#define M(g) N(g)
#endif

#include "wake.inc"

#define full(t, h) (diff(t, h) + 1 > ROOM)

/* [segment.state_reason] The upper bits: the reason of a failure, which may well be the number of a
 * generation, or else the generation. */
#define VACANT 0
#define ATTACHED 1
#define CLOSED 2
#define FAILED 3
#define low(word) ((word) % 4)
#define upper(word) ((word) / 4)
#define make(low, upper) ((low) + 4 * (upper))
#define REASON 1
#define final(word) (low(word) >= CLOSED)

byte state, generation;

/* The owner's thread is no more. */
bool gone[OWNERS];
byte received;
bool through;

#define from_owner(g, n) (20 * (g) + (n))
#define from_peer(g, n) (20 * (g) + 10 + (n))

/* [segment.state_ring] In one step: what can happen between them is shown in close.pml. */
inline ring_both() {
    d_step { ring(E); ring(P) }
}

/* A compare-exchange. */
inline change(from, to) {
    d_step {
        if
        :: state == (from) -> changed = true; state = (to)
        :: else -> changed = false
        fi
    }
}

inline give_back(r, h) {
#ifdef SUPERVISED
    head[r] = h                                         /* Nobody waits for room. */
#else
    store_and_wake(head[r], h, SPACE(r))
#endif
}

/* Of the word that says attached, in this generation. */
#define is_own (state == own)

proctype owner(byte g) {
    byte t, h, own, seen, sent, got_back, w, got, i, size, what;
    bool changed, found;
    {
        do
        :: d_step { state == make(VACANT, g) -> seen = state };
            change(seen, seen + ATTACHED);
            if
            :: changed -> break
            :: else
            fi
        od;
        changed = false;
        own = seen + ATTACHED;
        if
#ifdef MUT_BEGINS_AT_START
        :: true -> t = START; h = START
#else
        :: generation == 0 -> t = START; h = START
        :: generation > 0 -> t = tail[OUT]; h = head[BACK]  /* As they stand. */
#endif
        fi;
        seen = 0;
        ring_both();

        do
        :: sent < N(g) && is_own && !full(t, head[OUT]) ->
            place(OUT, t, 1, from_owner(g, sent + 1));
            sent++;
            t = plus(t, 1);
            store_and_wake(tail[OUT], t, DATA(OUT))
        :: is_own && tail[BACK] != h ->
            take(BACK, h, size, what);
            d_step {
                got_back++;
                assert(what == from_peer(g, got_back));
                h = plus(h, size);
                what = 0; size = 0
            };
            give_back(BACK, h)
        :: is_own && (sent == N(g) || full(t, head[OUT])) && tail[BACK] == h &&
            !(sent == N(g) && got_back == M(g)) ->
            load_bell(E);
#ifndef SUPERVISED
            if
            :: sent < N(g) -> arm(SPACE(OUT), minus(plus(t, 1), ROOM))
            :: else
            fi;
#endif
            arm(DATA(BACK), plus(h, 1));
            found = (sent < N(g) && !full(t, head[OUT]));
            found = (found || tail[BACK] != h);
            found = (found || !is_own);
            if
            :: !found -> wait(E)
            :: else -> found = false
            fi;
            d_step { disarm(SPACE(OUT)); disarm(DATA(BACK)) }
        :: sent == N(g) && got_back == M(g) -> break
#ifdef SUPERVISED
        :: g < LAST -> break                            /* Closes. */
#endif
        :: !is_own -> break                             /* Marked failed, or replaced. */
        od;
        if
#ifdef SUPERVISED
        :: g < LAST -> change(own, make(CLOSED, g)); changed = false; ring_both()
        :: g == LAST ->
#else
        :: g == LAST ->
#endif
            /* Nobody took it for its predecessor. */
            assert(sent == N(g) && got_back == M(g));
            through = true
        :: else
        fi
    } unless { gone[g] };
    d_step {
        gone[g] = true;
        t = 0; h = 0; own = 0; seen = 0; sent = 0; got_back = 0; w = 0; got = 0; i = 0; size = 0;
        what = 0; changed = false; found = false
    }
}

/* Sleeps until a ring; or, where the owner is dead, perhaps until a slice is over. */
inline wait_or_slice() {
    if
    :: moved[P] & ME
    :: d_step { !(moved[P] & ME) -> waiters[P] = waiters[P] | ME };
        if
        :: !(waiters[P] & ME)
        :: d_step { (waiters[P] & ME) && gone[g] -> waiters[P] = waiters[P] & ~ME };
            /* [segment.file_dead] */
            seen = state;
            if
            :: !final(seen) -> change(seen, make(FAILED, REASON)); changed = false
            :: else
            fi;
            seen = 0
        fi
    fi
}

inline take_one() {
    take(OUT, h, size, what);
    d_step {
        received++;
        assert(what == from_owner(g, received));
        h = plus(h, size);
        what = 0; size = 0
    }
}

inline equal_cursors() {
    tail[OUT] = h;
    head[OUT] = h;
    d_step {
#ifndef MUT_CURSORS_KEPT
        head[BACK] = t;
#endif
        /* Ghost: what was in the rings, half a frame too, is nobody's now. */
        i = 0;
        do
        :: i < RINGS * CAP -> cell[i] = FREE; span[i] = 0; i++
        :: else -> break
        od;
        i = 0
    }
}

inline clear_wants() {
    d_step {
#ifndef MUT_WANTS_KEPT
        wants[SPACE(OUT)] = 0;
#endif
        armed[SPACE(OUT)] = false
    };
    d_step {
#ifndef MUT_WANTS_KEPT
        wants[DATA(BACK)] = 0;
#endif
        armed[DATA(BACK)] = false
    }
}

inline make_vacant() {
#ifdef MUT_STATE_STORED
    state = make(VACANT, g + 1)
#else
    change(seen, make(VACANT, g + 1));
    assert(changed);
    changed = false
#endif
}

inline vacate() {
    assert(h == tail[OUT]);                             /* Everything was read. */
#if defined(MUT_STATE_FIRST)
    generation = g + 1;
    make_vacant();
    equal_cursors();
    clear_wants();
    ring_both()
#elif defined(MUT_GENERATION_LAST)
    equal_cursors();
    clear_wants();
    make_vacant();
    generation = g + 1;
    ring_both()
#elif defined(MUT_WANTS_LAST)
    equal_cursors();
    generation = g + 1;
    make_vacant();
    ring_both();
    clear_wants()
#else
    equal_cursors();
    clear_wants();
    generation = g + 1;
    make_vacant();
    ring_both()
#endif
}

proctype peer() {
    byte t = START, h = START, g, seen, sent, w, got, i, size, what;
    bool changed, found;
again:
    do
    :: tail[OUT] != h -> take_one(); give_back(OUT, h)
    :: sent < M(g) && !full(t, head[BACK]) ->
        place(BACK, t, 1, from_peer(g, sent + 1));
        sent++;
        t = plus(t, 1);
        store_and_wake(tail[BACK], t, DATA(BACK))
    :: tail[OUT] == h && (sent == M(g) || full(t, head[BACK])) && !final(state) &&
        !(g == LAST && received == N(g)) ->
        load_bell(P);
        arm(DATA(OUT), plus(h, 1));
#ifndef SUPERVISED
        if
        :: sent < M(g) -> arm(SPACE(BACK), minus(plus(t, 1), ROOM))
        :: else
        fi;
#endif
        found = (tail[OUT] != h);
        found = (found || (sent < M(g) && !full(t, head[BACK])));
        found = (found || final(state));
        if
        :: !found -> wait_or_slice()
        :: else -> found = false
        fi;
        d_step { disarm(DATA(OUT)); disarm(SPACE(BACK)) }
    /* Looks at the state: at any time, not only when there is nothing else to do. */
#ifdef MUT_NO_LAST_LOOK
    :: tail[OUT] == h ->
        if
        :: d_step { final(state) -> seen = state }
        :: else -> goto again
        fi;
#else
    :: d_step { final(state) -> seen = state };
#endif
#ifndef MUT_OWNER_ALIVE
        gone[g];                                        /* Looked for at the end of slices. */
#endif
#if !defined(MUT_VACATES_EARLY) && !defined(MUT_NO_LAST_LOOK)
        do
        :: tail[OUT] != h -> take_one()
        :: else -> break
        od;
#endif
        vacate();
        d_step { seen = 0; sent = 0; received = 0; g++ }
    :: g == LAST && received == N(g) && sent == M(g) -> break
    od
}

#ifdef SUPERVISED
/* Of the first owner. Of its three attempts it needs two at most. */
proctype supervisor() {
    byte seen;
    bool changed;
#ifndef MUT_OWNER_ALIVE
    gone[0];
#endif
    do
    :: atomic {
            seen = state;
            if
            :: final(seen) -> changed = true
#ifndef MUT_SUPERVISOR_BLIND
            :: !final(seen) && upper(seen) != 0 -> seen = 0; break
            :: !final(seen) && upper(seen) == 0
#else
            :: else
#endif
            fi
        };
        if
        :: !changed ->
            d_step {
                if
                :: state == seen ->
                    assert(upper(seen) == 0);           /* It marks the right one. */
                    changed = true;
                    state = make(FAILED, REASON)
                :: else
                fi
            }
        :: else
        fi;
        if
        :: changed -> ring_both(); break
        :: else
        fi
    od;
    atomic { seen = 0; changed = false }
}
#endif

/* Kills an owner, but for the last, or nobody. */
proctype death(byte g) {
    gone[g] = true
}

init {
    byte i;
    begin();
    atomic {
        run peer();
        i = LAST;
        run owner(i);
        do
        :: i > 0 -> i--; run owner(i); run death(i)
        :: else -> break
        od;
#ifdef SUPERVISED
        run supervisor()
#endif
    };
    _nr_pr == 1;
    assert(through && state == make(ATTACHED, LAST) && generation == LAST);
    assert(head[0] == tail[0] && head[1] == tail[1]);
    assert(wants[0] + wants[1] + wants[2] + wants[3] == 0)
}
