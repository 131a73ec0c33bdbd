/*
 * An endpoint that dies, at any step, and is found dead by nobody but its peer: by the lock on its
 * record, which a sleeper looks at after each slice ([wait.slice]).
 *
 * The ring has room for one frame, so that both sides wait. The end of a slice is a step that may
 * happen only when nothing else can; an assertion shows that it does only where the peer has died.
 * It may have died between its store of a cursor and its ring, or between taking `wants` and the
 * ring: then what it has published is there, and nobody says so.
 */
#define ENDS 2
#define RINGS 1
#define CAP 4
#define SPURIOUS 1
#define WRITER 0
#define READER 1
#define OWNER(k) (1 - (k))
#define ROOM 1
#define N 3

#include "wake.inc"

/* The kernel has released the lock: the endpoint's process is gone. */
bool dead[ENDS];
bool through[ENDS];

byte received, received_tail;

/* Sleeps until a ring or until the slice is over. */
inline wait_or_slice(e) {
    if
    :: moved[e] & ME
    :: d_step { !(moved[e] & ME) -> waiters[e] = waiters[e] | ME };
        if
        :: !(waiters[e] & ME)
        :: d_step { (waiters[e] & ME) && spurious > 0 ->
                spurious--; waiters[e] = waiters[e] & ~ME }
#ifndef MUT_NO_SLICE
        :: d_step { timeout && (waiters[e] & ME) ->
                assert(dead[1 - e]);                    /* A wake is lost for no other reason. */
                waiters[e] = waiters[e] & ~ME };
#ifndef MUT_NO_LOCK
            peer_dead = dead[1 - e]
#endif
#endif
        fi
    fi
}

proctype writer() {
    byte t = START, h, sent, w, got, i;
    bool peer_dead;
    {
        do
        :: sent < N && !peer_dead ->
            h = head[0];
            assert(diff(t, h) <= CAP);
            if
            :: diff(t, h) + 1 <= ROOM ->
                d_step { sent++; h = 0 };
                place(0, t, 1, sent);
                t = plus(t, 1);
                store_and_wake(tail[0], t, DATA(0))
            :: else ->
                load_bell(WRITER);
                arm(SPACE(0), minus(plus(t, 1), ROOM));
                h = head[0];
                if
                :: diff(t, h) + 1 > ROOM -> wait_or_slice(WRITER)
                :: else
                fi;
                h = 0;
                disarm(SPACE(0))
            fi
        :: else -> break
        od;
        through[WRITER] = true
    } unless { dead[WRITER] }
}

proctype reader() {
    byte h = START, t, w, got, i, size, what;
    bool peer_dead;
    {
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
                        h = plus(h, size);
                        received++;
                        assert(what == received);
                        what = 0; size = 0
                    }
                :: else -> break
                od;
                t = 0;
                store_and_wake(head[0], h, SPACE(0))
#ifdef MUT_DEAD_AT_ONCE
            :: t == h && peer_dead -> break
#else
            :: t == h && peer_dead ->
                /* [pipe.drain] The look above came after the one at the lock. */
                assert(h == tail[0]);
                break
#endif
            :: t == h && !peer_dead ->
                load_bell(READER);
                arm(DATA(0), plus(h, 1));
                t = tail[0];
                if
                :: t == h -> wait_or_slice(READER)
                :: else
                fi;
                t = 0;
                disarm(DATA(0))
#ifdef MUT_DEAD_AT_ONCE
                ;
                if
                :: peer_dead -> break
                :: else
                fi
#endif
            fi
        :: else -> break
        od;
        through[READER] = true
    } unless { dead[READER] };
    received_tail = h
}

proctype death() {
    if
    :: dead[WRITER] = true
    :: dead[READER] = true
    :: true
    fi
}

init {
    byte i;
    begin();
    atomic { run writer(); run reader(); run death() };
    _nr_pr == 1;
    assert((through[WRITER] || dead[WRITER]) && (through[READER] || dead[READER]));
    /* Everything that was published is read, unless the reader is the one that died. */
    assert(dead[READER] || received_tail == tail[0]);
    assert(dead[WRITER] || dead[READER] || received == N)
}
