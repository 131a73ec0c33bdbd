/*
 * Attach, end, close and failure, at any point.
 *
 * One ring that holds a single data frame, so that both sides wait. Either endpoint closes when it
 * likes. A supervisor may close it too, or mark it failed, or see it killed between any two steps
 * and then mark it failed. The reader may also find the ring corrupt and mark the writer failed,
 * which races with the writer's own close.
 *
 * A process that was killed leaves what it did and nothing else; it may have died after it changed
 * its state and before it rang.
 */
#define ENDS 2
#define RINGS 1
#define CAP 2
#ifndef SPURIOUS
#define SPURIOUS 0
#endif
#define WRITER 0
#define READER 1
#define OWNER(k) (1 - (k))
#define ROOM (CAP - 1)
#ifndef N
#define N 2
#endif
#ifndef ACTIONS
#define ACTIONS 1
#endif

#include "wake.inc"

#define VACANT 0
#define ATTACHED 1
#define CLOSED 2
#define FAILED 3
#define final(s) ((s) >= CLOSED)

byte state[ENDS];
bool killed[ENDS];
bool gone[ENDS];

/* An endpoint whose thread does something else until the other one is gone, however long. */
bool idle[ENDS];

/* Ghost: `tail` at the moment at which the writer's state became final. */
byte last_tail;
byte sent, received;

/* Why the reader stopped. */
#define READING 0
#define STREAM_ENDED 1
#define PEER_GONE 2
#define SELF_GONE 3
#define CORRUPT 4
byte outcome;

/* The bell of the endpoint and those of its peers; with two endpoints, all there are. */
inline ring_all(e) {
#if defined(MUT_CLOSE_SILENT)
    skip
#elif defined(MUT_CLOSE_PEER_ONLY)
    ring(1 - (e))
#elif defined(MUT_CLOSE_OWN_ONLY)
    ring(e)
#elif defined(MUT_CLOSE_BY_WANTS)
    if
    :: wants[1 - READER] != 0 -> claim_ring(1 - READER)
    :: else
    fi;
    if
    :: wants[1 - WRITER] != 0 -> claim_ring(1 - WRITER)
    :: else
    fi
#else
    ring(1 - (e));
    ring(e)
#endif
}

/*
 * [segment.state_change] Every change of a state word is a compare-exchange; one that fails is
 * tried again unless the word is final by then. [segment.state_ring] Whoever wanted a final state
 * rings even if another was first: the first one may have died before it rang.
 */
inline become(e, value) {
#ifdef MUT_RING_BEFORE_STATE
    ring_all(e);
#endif
    do
    :: seen = state[e];
        if
        :: final(seen) -> break
        :: (seen == ATTACHED && value == ATTACHED) -> break
        :: (seen == VACANT && value == CLOSED) -> break
        :: else
        fi;
#ifdef MUT_STATE_STORED
        d_step {
            assert(!final(state[e]));                   /* A final state stays as it is. */
            if
            :: (e) == WRITER && final(value) -> last_tail = tail[0]
            :: else
            fi;
            state[e] = (value)
        };
        break
#else
        d_step {
            if
            :: state[e] == seen ->
                if
                :: (e) == WRITER && final(value) -> last_tail = tail[0]
                :: else
                fi;
                state[e] = (value);
                seen = ATTACHED + FAILED                /* Done. */
            :: else
            fi
        };
        if
        :: seen == ATTACHED + FAILED -> break
        :: else
        fi
#ifdef MUT_NO_RETRY
        ; break
#endif
#endif
    od;
    assert(value != FAILED || final(state[e]));
#ifdef MUT_LOSER_SILENT
    if
    :: seen == ATTACHED + FAILED -> ring_all(e)
    :: else
    fi;
#elif !defined(MUT_RING_BEFORE_STATE)
    ring_all(e);
#endif
    seen = 0
}

/* [wait.recheck] [pipe.close_frees] Part of every second look. */
inline look_at_states(e) {
#ifdef MUT_OWN_STATE_IGNORED
    own = ATTACHED;
#else
    own = state[e];
#endif
    peer = state[1 - (e)]
}

proctype writer() {
    byte t = START, h, w, got, i, seen, own, peer;
    bool ended;
    {
        become(WRITER, ATTACHED);
        do
        :: sent < N ->
            h = head[0];
            assert(diff(t, h) <= CAP);
            if
            :: diff(t, h) + 1 <= ROOM ->
                h = 0;
                d_step { sent++; i = 0 };
                place(0, t, 1, sent);
                t = plus(t, 1);
                store_and_wake(tail[0], t, DATA(0))
            :: else ->
#ifdef MUT_NO_STATE_RECHECK
                look_at_states(WRITER);
#endif
                load_bell(WRITER);
                arm(SPACE(0), minus(plus(t, 1), ROOM));
#ifndef MUT_NO_STATE_RECHECK
                look_at_states(WRITER);
#endif
                h = head[0];
                if
                :: final(own) || final(peer) -> disarm(SPACE(0)); break
                :: else
                fi;
                if
                :: diff(t, h) + 1 > ROOM -> wait(WRITER)
                :: else
                fi;
                d_step { own = 0; peer = 0; h = 0 };
                disarm(SPACE(0))
            fi
        :: sent == N && !ended ->
            place(0, t, 1, END);
            ended = true;
            t = plus(t, 1);
            store_and_wake(tail[0], t, DATA(0));
            break
        :: break                                        /* Closes without `end`. */
        :: atomic { !idle[READER] -> idle[WRITER] = true }; gone[READER]; break
        od;
        atomic { own = 0; peer = 0; h = 0 };
        become(WRITER, CLOSED)
    } unless { killed[WRITER] };
    gone[WRITER] = true
}

proctype reader() {
    byte h = START, t, w, got, i, seen, own, peer, size, what;
    {
        become(READER, ATTACHED);
        do
        :: t = tail[0];
            assert(diff(t, h) <= CAP);
            if
            :: t != h ->
                do
                :: t != h ->
                    take(0, h, size, what);
                    d_step {
                        h = plus(h, size);
                        if
                        :: what == END -> outcome = STREAM_ENDED
                        :: else -> received++; assert(what == received)
                        fi;
                        what = 0; size = 0
                    }
                :: else -> break
                od;
                t = 0;
                store_and_wake(head[0], h, SPACE(0));
                if
                :: outcome == STREAM_ENDED -> assert(received == N); break
                :: else
                fi
            :: else ->
#ifdef MUT_NO_STATE_RECHECK
                look_at_states(READER);
#endif
                load_bell(READER);
                arm(DATA(0), plus(h, 1));
                t = tail[0];
#ifndef MUT_NO_STATE_RECHECK
                look_at_states(READER);
#endif
                if
                :: final(own) -> outcome = SELF_GONE
                :: !final(own) && t == h && final(peer) ->
#ifndef MUT_NO_LAST_LOAD
                    /* [pipe.look_again] The peer may have published between the two loads. */
                    t = tail[0];
#endif
                    if
                    :: t == h ->
                        outcome = PEER_GONE;
                        assert(diff(h, last_tail) < MOD / 2)    /* [pipe.drain] */
                    :: else
                    fi
                :: else ->
                    if
                    :: t == h -> wait(READER)
                    :: else
                    fi
                fi;
                d_step { own = 0; peer = 0; t = 0 };
                disarm(DATA(0));
                if
                :: outcome != READING -> break
                :: else
                fi
            fi
        :: outcome = SELF_GONE; break                   /* Closes whenever it likes. */
        :: become(WRITER, FAILED); outcome = CORRUPT; break
        :: atomic { !idle[WRITER] -> idle[READER] = true }; gone[WRITER]; break
        od;
        t = 0;
        become(READER, CLOSED)
    } unless { killed[READER] };
    gone[READER] = true
}

proctype supervisor() {
    byte i, e, seen, w, got;
    do
    :: i < ACTIONS ->
        select(e : 0 .. 1);
        if
        :: become(e, CLOSED)
        :: become(e, FAILED)
        :: killed[e] = true; become(e, FAILED)
        fi;
        i++
    :: break
    od;
    /* If one side idles, the other may wait for ever; it must come back once this closes it. */
    if
    :: idle[WRITER] && state[READER] != VACANT -> become(READER, CLOSED)
    :: idle[WRITER] -> become(READER, FAILED)
    :: idle[READER] && state[WRITER] != VACANT -> become(WRITER, CLOSED)
    :: idle[READER] -> become(WRITER, FAILED)
    :: gone[WRITER] && gone[READER]
    fi
}

init {
    byte i;
    begin();
    atomic { run writer(); run reader(); run supervisor() };
    _nr_pr == 1;                                        /* Every waiter was released. */
    assert(final(state[WRITER]) && final(state[READER]));
    assert(diff(tail[0], head[0]) <= CAP)
}
