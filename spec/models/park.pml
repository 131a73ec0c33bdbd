/*
 * A reader that waits for data, and a writer that publishes: the event count and the Dekker pair.
 *
 * The ring is large enough for all messages, so that only the reader ever waits. Spinning is not a
 * step of its own: a load that finds nothing changes nothing, so a spin that succeeds after many
 * loads is the same as one load that happens later, and those are all explored.
 */
#define ENDS 2
#define RINGS 1
#define CAP 8
#define SPURIOUS 2
#define WRITER 0
#define READER 1
#define OWNER(k) READER
#define N 5

#include "wake.inc"

byte received;

proctype writer() {
    byte t = START, sent, w, got, i;
    do
    :: sent < N ->
        /* One publish covers one frame or two. */
        sent++;
        place(0, t, 1, sent);
        t = plus(t, 1);
        if
        :: sent < N ->
            sent++;
            place(0, t, 1, sent);
            t = plus(t, 1)
        :: true
        fi;
        store_and_wake(tail[0], t, DATA(0))
    :: else -> break
    od
}

proctype reader() {
    byte h = START, t, size, what, i;
#ifdef MUT_NO_REARM
    bool slept;
#endif
    do
    :: received < N ->
        t = tail[0];
        assert(diff(t, h) <= CAP);
        if
        :: t != h ->
            do
            :: t != h ->
                take(0, h, size, what);
                d_step {
                    received++;
                    assert(what == received);           /* In order, none lost, none twice. */
                    h = plus(h, size);
                    what = 0; size = 0
                }
            :: else -> break
            od;
            head[0] = h
#ifdef MUT_NO_REARM
            ; slept = false
#endif
        :: else ->
            /* [wait.bell_first] [wait.store_order] [wait.recheck] Bell, wants, second look. */
#if defined(MUT_CHECK_BEFORE_ARM)
            load_bell(READER);
            t = tail[0];
            arm(DATA(0), plus(h, 1));
#elif defined(MUT_BELL_AFTER_ARM)
            arm(DATA(0), plus(h, 1));
            load_bell(READER);
            t = tail[0];
#elif defined(MUT_BELL_AFTER_RECHECK)
            arm(DATA(0), plus(h, 1));
            t = tail[0];
            load_bell(READER);
#elif defined(MUT_NO_RECHECK)
            load_bell(READER);
            arm(DATA(0), plus(h, 1));
#elif defined(MUT_NO_REARM)
            load_bell(READER);
            if
            :: !slept -> arm(DATA(0), plus(h, 1))
            :: else
            fi;
            t = tail[0];
#else
            load_bell(READER);
            arm(DATA(0), plus(h, 1));
            t = tail[0];
#endif
            if
            :: t == h ->
                wait(READER)
#ifdef MUT_NO_REARM
                ; slept = true
#endif
            :: else
            fi;
            disarm(DATA(0))
        fi
    :: else -> break
    od
}

init {
    byte i;
    begin();
    atomic { run writer(); run reader() };
    _nr_pr == 1;
    assert(received == N);
    assert(head[0] == tail[0] && wants[DATA(0)] == 0)
}
