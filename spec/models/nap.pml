/*
 * A thread with an event loop that blocks while an asynchronous read of the same endpoint is
 * outstanding.
 *
 * Endpoint A's thread reads asynchronously, one message at a time: the read's word is armed, and
 * its sleep is on the bell while the thread does something else. That may be a nap: it sleeps once,
 * for a limited time, in the hope that an answer comes before it has to turn the loop, and takes
 * what has come into the inbox. Or a blocking read, which takes a message for itself and leaves
 * others that came with it in the inbox. Both wait for the same word as the outstanding read, which
 * a private count keeps armed until the last wait that needs it is over.
 *
 * The loop turns only where nothing blocks, so that all this is one process. Nothing but a ring
 * ends the asynchronous sleep.
 */
#define ENDS 2
#define RINGS 1
#define CAP 4
#define SPURIOUS 1
#define A 0
#define B 1
#define OWNER(k) A
#define N 3
#define BLOCKS 2

#include "wake.inc"

/* How many messages were taken out of the ring, and how many delivered. */
byte taken, delivered;
#define in_inbox (taken - delivered)

/* How many waits of A need the word. */
byte needed;

/* The asynchronous sleep: begun, and its end not noticed yet. */
bool asleep;
bool reading;

#define sleep_is_over (asleep && !(waiters[A] & LATER))

inline ask(position) {
#ifdef MUT_ARM_ONCE
    d_step {
        if
        :: needed == 0 -> wants[DATA(0)] = want(position); armed[DATA(0)] = true
        :: else
        fi;
        needed++
    }
#else
    d_step { needed++; wants[DATA(0)] = want(position); armed[DATA(0)] = true }
#endif
}

/* [wait.disarm] Unless another wait of the same endpoint still needs that word. */
inline unask() {
    d_step {
        needed--;
#ifndef MUT_NO_DISARM
        if
        :: needed == 0 -> wants[DATA(0)] = 0
        :: else
        fi;
#endif
        if
        :: needed == 0 -> armed[DATA(0)] = false
        :: else
        fi
    }
}

inline rouse_read() {
    if
    :: reading -> unask(); reading = false
    :: else
    fi
}

/* Takes what is there into the inbox; `found` says whether there was anything. */
inline fill_inbox() {
    t = tail[0];
    found = (t != h);
    do
    :: t != h ->
        take(0, h, size, what);
        d_step {
            taken++;
            assert(what == taken);
            h = plus(h, size);
            what = 0; size = 0
        }
    :: else -> break
    od;
    t = 0;
    head[0] = h
}

inline begin_wait() {
    load_bell(A);
    ask(plus(h, 1));
    t = tail[0]
}

inline end_wait() {
    t = 0;
#ifdef MUT_CLEARS
    wants[DATA(0)] = 0;
#endif
    unask();
    moved[A] = moved[A] | ME
}

proctype loop() {
    byte t, h = START, blocks, i, size, what;
    bool found;
    do
    /* The read: from the inbox, or else it looks and waits. */
    :: delivered < N && !reading && !sleep_is_over ->
        if
        :: in_inbox == 0 -> fill_inbox()
        :: else
        fi;
        if
        :: in_inbox > 0 -> delivered++; found = false
        :: else ->
            /* [wait.async_one] A sleep that is outstanding has a value of the bell already. */
            if
            :: !asleep -> moved[A] = moved[A] & ~LATER
            :: else
            fi;
            ask(plus(h, 1));
            reading = true;
            t = tail[0];
            if
            :: t != h -> rouse_read()
            :: t == h && !asleep ->
                asleep = true;
                d_step {
                    if
                    :: !(moved[A] & LATER) -> waiters[A] = waiters[A] | LATER
                    :: else
                    fi
                }
            :: else
            fi;
            t = 0
        fi

    :: sleep_is_over ->
        asleep = false;
        moved[A] = moved[A] | LATER;
        rouse_read()

    :: reading && blocks < BLOCKS ->
        blocks++;
        begin_wait();
        if
        :: t == h -> wait_slice(A)
        :: else
        fi;
        end_wait();
        fill_inbox();
        if
        :: found ->
            found = false
#ifndef MUT_SILENT_INBOX
            ; rouse_read()                              /* [port.inbox_wake] */
#endif
        :: else
        fi

    /* The blocking read; of a message that will come. */
    :: reading && blocks < BLOCKS && delivered < N ->
        blocks++;
        do
        :: fill_inbox();
            if
            :: found -> break
            :: else ->
                begin_wait();
                if
                :: t == h -> wait(A)
                :: else
                fi;
                end_wait()
            fi
        od;
        found = false;
        delivered++;
        if
        :: in_inbox > 0 ->
#ifndef MUT_SILENT_REST
            rouse_read()
#else
            skip
#endif
        :: else
        fi

    :: delivered == N -> break
    od;
    rouse_read()                                        /* Given up: nothing more will come. */
}

proctype writer() {
    byte t = START, sent, w, got, i;
    do
    :: sent < N ->
        sent++;
        place(0, t, 1, sent);
        t = plus(t, 1);
        store_and_wake(tail[0], t, DATA(0))
    :: else -> break
    od
}

init {
    byte i;
    begin();
    atomic { run loop(); run writer() };
    _nr_pr == 1;
    assert(delivered == N && taken == N);
    assert(needed == 0 && wants[DATA(0)] == 0)
}
