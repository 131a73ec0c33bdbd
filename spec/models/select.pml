/*
 * A hub: two writers, a ring each, and one reader whose one bell serves both rings.
 *
 * The rings are large enough, so that only the reader ever waits. It always waits for both rings,
 * also for one whose writer will publish nothing more. With STAY_ARMED, the ring in which nothing
 * has come stays armed while the reader looks at the other and sleeps again.
 */
#define ENDS 3
#define RINGS 2
#define CAP 4
#define SPURIOUS 1
#define READER 2
#define OWNER(k) READER
#define N 2

#include "wake.inc"

byte received[RINGS];

/* [wait.exchange] Only the word of the ring whose cursor it stored. */
inline store_and_ring(r, t) {
#ifdef MUT_TAKES_BOTH
    tail[r] = t;
    w = wants[DATA(r)];
    if
    :: w != 0 && reached(t, w) ->
        w = 0;
        d_step { wants[DATA(1 - r)] = 0; armed[DATA(1 - r)] = false };
        claim_ring(DATA(r))
    :: else -> w = 0
    fi
#else
    store_and_wake(tail[r], t, DATA(r))
#endif
}

proctype writer(byte r) {
    byte t = START, sent, w, got, i;
    do
    :: sent < N ->
        sent++;
        place(r, t, 1, sent);
        t = plus(t, 1);
        store_and_ring(r, t)
    :: else -> break
    od
}

inline drain(r, h) {
    t = tail[r];
    assert(diff(t, h) <= CAP);
    do
    :: t != h ->
        take(r, h, size, what);
        d_step {
            received[r]++;
            assert(what == received[r]);                /* In order, none lost, none twice. */
            h = plus(h, size);
            what = 0; size = 0;
            found = true
        }
    :: else -> break
    od;
    t = 0
}

#ifdef STAY_ARMED

/* Takes the word back, and goes on sleeping on the bell that it has loaded. */
inline take_back(k) {
    d_step { wants[k] = 0; armed[k] = false }
}

/* [wait.stay_armed] Stores the word again where it was taken, and looks behind that. */
inline stay(r, h) {
#ifndef MUT_STAY_BLIND
    w = wants[DATA(r)];
    if
    :: w != want(plus(h, 1)) -> w = 0; arm(DATA(r), plus(h, 1))
    :: else -> w = 0
    fi;
#endif
#ifdef MUT_STAY_UNSEEN
    t = h;
#else
    t = tail[r];
#endif
    if
    :: t != h -> take_back(DATA(r)); serve(r, h)
    :: else
    fi;
    t = 0
}

/* Reads until nothing is left behind the arming. */
inline serve(r, h) {
    do
    :: true ->
        drain(r, h);
        found = false;
        arm(DATA(r), plus(h, 1));
        t = tail[r];
        if
        :: t == h -> break
        :: else -> take_back(DATA(r))
        fi
    od;
    t = 0
}

proctype reader() {
    byte h0 = START, h1 = START, t, w, size, what, i;
    bool found;
    load_bell(READER);
    serve(0, h0);
    serve(1, h1);
    do
    :: received[0] < N || received[1] < N ->
        wait(READER);
#ifdef MUT_STAY_BELL_LATE
        stay(0, h0);
        stay(1, h1);
        load_bell(READER)
#else
        load_bell(READER);
        stay(0, h0);
        stay(1, h1)
#endif
    :: else -> break
    od;
    disarm(DATA(0));
    disarm(DATA(1));
    head[0] = h0;
    head[1] = h1
}

#else

proctype reader() {
    byte h0 = START, h1 = START, t, size, what, i;
    bool found;
#ifdef MUT_BELL_ONCE
    load_bell(READER);
#endif
    do
    :: received[0] < N || received[1] < N ->
        drain(0, h0);
        drain(1, h1);
        if
        :: found -> found = false
        :: else ->
            /* [wait.bell_first] Before the first of all words that it arms. */
#if defined(MUT_BELL_BETWEEN)
            arm(DATA(0), plus(h0, 1));
            load_bell(READER);
            arm(DATA(1), plus(h1, 1));
#elif defined(MUT_ARM_ONE)
            load_bell(READER);
            arm(DATA(0), plus(h0, 1));
#elif defined(MUT_ARM_CLEARS)
            load_bell(READER);
            arm(DATA(0), plus(h0, 1));
            d_step { wants[DATA(0)] = 0; armed[DATA(0)] = false };
            arm(DATA(1), plus(h1, 1));
#elif defined(MUT_BELL_ONCE)
            arm(DATA(0), plus(h0, 1));
            arm(DATA(1), plus(h1, 1));
#else
            load_bell(READER);
            arm(DATA(0), plus(h0, 1));
            arm(DATA(1), plus(h1, 1));
#endif
            /* [wait.recheck] Each of them. */
            t = tail[0];
            found = (t != h0);
#ifndef MUT_RECHECK_ONE
            t = tail[1];
            found = found || t != h1;
#endif
            t = 0;
            if
            :: !found -> wait(READER)
            :: else -> found = false
            fi;
            /* [wait.disarm] Each of them. */
#ifdef MUT_BELL_ONCE
            d_step { wants[DATA(0)] = 0; armed[DATA(0)] = false };
            d_step { wants[DATA(1)] = 0; armed[DATA(1)] = false }
#elif defined(MUT_DISARM_ONE)
            disarm(DATA(0));
            armed[DATA(1)] = false
#else
            disarm(DATA(0));
            disarm(DATA(1))
#endif
        fi
    :: else -> break
    od;
    head[0] = h0;
    head[1] = h1
}

#endif

init {
    byte i;
    begin();
    atomic { run writer(0); run writer(1); run reader() };
    _nr_pr == 1;
    assert(received[0] == N && received[1] == N);
    assert(wants[DATA(0)] == 0 && wants[DATA(1)] == 0)
}
