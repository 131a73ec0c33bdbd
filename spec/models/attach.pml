/*
 * A reader that sleeps while its peer is vacant, before it can know how the peer rings.
 *
 * The writer turns out, when it attaches, either able or unable to ring the mechanism by which the
 * reader sleeps; its `wakes` word says which. A ring by a writer that cannot still moves the bell,
 * but ends no sleep. Polling, and a slice that ends, are steps that look for what a second look
 * would find: one that finds nothing changes nothing.
 */
#define ENDS 2
#define RINGS 1
#define CAP 4
#define SPURIOUS 1
#define WRITER 0
#define READER 1
#define OWNER(k) (1 - (k))
#define N 2

#include "wake.inc"

#define VACANT 0
#define ATTACHED 1

byte state;
bool able, wakes;
byte received;

/* A ring as far as the writer's kind of notify reaches. */
inline ring_if_able() {
    moved[READER] = ALL;
    if
    :: able -> waiters[READER] = 0
    :: else
    fi
}

proctype writer() {
    byte t = START, sent, w, got, i;
    if
    :: able = true
    :: able = false
    fi;
#ifdef MUT_WAKES_FIRST
    wakes = able;
    state = ATTACHED;
#else
    state = ATTACHED;
    wakes = able;
#endif
#ifndef MUT_ATTACH_SILENT
    ring_if_able();
#endif
    do
    :: sent < N ->
        sent++;
        place(0, t, 1, sent);
        t = plus(t, 1);
        tail[0] = t;
        w = wants[DATA(0)];
        if
        :: w != 0 && reached(t, w) ->
            d_step { got = wants[DATA(0)]; wants[DATA(0)] = 0; armed[DATA(0)] = false };
            if
            :: got != 0 -> ring_if_able()
            :: else
            fi
        :: else
        fi;
        d_step { w = 0; got = 0 }
    :: else -> break
    od
}

proctype reader() {
    byte h = START, t, i, size, what, peer;
    bool rings;
    do
    :: received < N ->
        t = tail[0];
        if
        :: t != h ->
            take(0, h, size, what);
            d_step {
                received++;
                assert(what == received);
                h = plus(h, size);
                what = 0; size = 0
            };
            head[0] = h
        :: else ->
            load_bell(READER);
            arm(DATA(0), plus(h, 1));
            t = tail[0];
            peer = state;
            rings = wakes;
            if
            :: t != h
            :: t == h && peer == VACANT ->
#ifdef MUT_VACANT_FOREVER
                wait(READER)
#else
                /* [wait.vacant] [wait.slice] Perhaps only the end of the slice ends this. */
                if
                :: moved[READER] & ME
                :: d_step { !(moved[READER] & ME) -> waiters[READER] = ME };
                    if
                    :: waiters[READER] == 0
                    :: d_step { waiters[READER] != 0 && (state != VACANT || tail[0] != h) ->
                            waiters[READER] = 0 }
                    fi
                fi
#endif
            :: t == h && peer == ATTACHED && rings -> wait(READER)
            :: t == h && peer == ATTACHED && !rings ->
#ifdef MUT_MECHANISM_IGNORED
                wait(READER)
#else
                tail[0] != h                            /* [wait.mechanism] Polls. */
#endif
            fi;
            d_step { peer = 0; rings = false; t = 0 };
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
    assert(received == N)
}
