/*
 * A writer that waits for space, in a ring with pads, wrap-around and frames of several sizes.
 *
 * The capacity is that of the smallest ring, 16 units. Both sides may hold back, the writer the
 * finished frames and the reader the space it has released, but not over a wait.
 */
#define ENDS 2
#define RINGS 1
#define CAP 16
#define SPURIOUS 1
#define WRITER 0
#define READER 1
#define OWNER(k) ((k) % 2 == 0 -> READER : WRITER)
#ifndef N
#define N 4
#endif
#define HALF (CAP / 2)
#define QUARTER (CAP / 4)

#include "wake.inc"

/* [ring.room] Data leaves the last unit free, so that the frame `end` finds room at any time. */
#ifdef MUT_LAST_UNIT
#define ROOM CAP
#else
#define ROOM (CAP - 1)
#endif

#ifdef MUT_OVER_HALF
#define LARGEST (HALF + 1)
#else
#define LARGEST HALF
#endif

/* [wait.writer_more] A writer may ask for more than it needs, but then only for a short sleep. Here
 * it may even ask for more than its own tail, which no reader can reach. */
#if defined(MUT_GREEDY) || defined(MUT_GREEDY_CAPPED)
#define GREEDY true
#define FOREVER true
#else
#define GREEDY (!patient)
#define FOREVER patient
#endif

byte received;
bool ended;

proctype writer() {
    byte t = START, h, w, got, i;
    byte sent, size, pad, target;
    bool patient;                                       /* Asks for no more than it needs. */

    do
    :: sent < N ->
        if
        :: size = 1
        :: size = 3
        :: size = LARGEST
        fi;
#ifndef MUT_NO_PAD
        /* [ring.pad] */
        pad = (t % CAP + size > CAP -> CAP - t % CAP : 0);
#endif
#ifndef MUT_OVER_HALF
        assert(pad + size <= CAP - 1);                  /* Fits an empty ring wherever it starts. */
#endif

        do
        :: h = head[0];
            assert(diff(t, h) <= CAP);
            if
            :: diff(t, h) + pad + size <= ROOM -> break
            :: else
            fi;
#ifndef MUT_HOLD_BATCH
            /* [ring.publish_all] */
            if
            :: t != tail[0] -> store_and_wake(tail[0], t, DATA(0))
            :: else
            fi;
#endif
            load_bell(WRITER);
            if
            :: patient = true
            :: true
            fi;
            /* [wait.writer_asks] The `head` at which pad plus frame fits. */
            target = minus(plus(t, pad + size), ROOM);
#ifdef MUT_GREEDY_CAPPED
            target = (diff(t, target) < QUARTER -> t : plus(target, QUARTER));
#else
            if
            :: GREEDY -> target = plus(target, QUARTER)
            :: else
            fi;
#endif
            arm(SPACE(0), target);
            target = 0;
            h = head[0];
            if
            :: diff(t, h) + pad + size > ROOM ->
                if
                :: FOREVER -> wait(WRITER)
                :: else -> wait_slice(WRITER); patient = true
                fi
            :: else
            fi;
            disarm(SPACE(0))
        od;
        patient = false;

        d_step {
            sent++;
            h = 0
        };
        if
        :: pad > 0 -> place(0, t, pad, PAD); t = plus(t, pad); pad = 0
        :: else
        fi;
        place(0, t, size, sent);
        d_step { t = plus(t, size); size = 0 };
        if
        :: store_and_wake(tail[0], t, DATA(0))
        :: true                                         /* Holds it back: a batch. */
        fi
    :: else -> break
    od;

    assert(diff(t, head[0]) < CAP);                     /* `end` never waits. */
    place(0, t, 1, END);
    t = plus(t, 1);
    store_and_wake(tail[0], t, DATA(0))
}

proctype reader() {
    byte h = START, t, w, got, i, size, what;
    do
    :: !ended ->
        t = tail[0];
        assert(diff(t, h) <= CAP);
        do
        :: t != h ->
            take(0, h, size, what);
            d_step {
                assert(!ended);
                if
                :: what == END -> ended = true
                :: what == PAD -> assert(plus(h, size) % CAP == 0)
                :: else -> received++; assert(what == received)
                fi;
                h = plus(h, size);
                what = 0; size = 0
            };
            if
            :: t != h -> store_and_wake(head[0], h, SPACE(0))
            :: true                                     /* Holds the space back. */
            fi
        :: else -> break
        od;
        if
        :: ended -> break
        :: else
        fi;
#ifndef MUT_HOLD_HEAD
        /* [ring.release_all] */
        if
        :: h != head[0] -> store_and_wake(head[0], h, SPACE(0))
        :: else
        fi;
#endif
        load_bell(READER);
        arm(DATA(0), plus(h, 1));
        t = tail[0];
        if
        :: t == h -> wait(READER)
        :: else
        fi;
        disarm(DATA(0))
    :: else -> break
    od;
    head[0] = h                                         /* After `end` nobody waits for space. */
}

init {
    byte i;
    begin();
    atomic { run writer(); run reader() };
    _nr_pr == 1;
    assert(received == N && ended);
    assert(head[0] == tail[0] && wants[DATA(0)] == 0 && wants[SPACE(0)] == 0);
    i = 0;
    do
    :: i < CAP -> assert(cell[i] == FREE); i++
    :: else -> break
    od
}
