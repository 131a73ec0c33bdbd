/*
 * Messages that a post accepted and that found no room yet, while their thread waits for something
 * else [port.posted].
 *
 * A hub posts to both of its clients, more than their rings can hold, and then reads from the first
 * one, which answers only when both have everything. In a variant, chosen at the start, the first
 * client is late: it takes nothing before the second one is through, and the last message to it is
 * a blocking write, behind the posts. So each of the hub's waits, for data and for room, comes to
 * an end only if what is left for the other ring goes on.
 */
#define ENDS 3
#define RINGS 3
#define CAP 2
#ifndef SPURIOUS
#define SPURIOUS 1
#endif
#define HUB 0
#define FIRST 1
#define SECOND 2
#define TO_FIRST 0
#define TO_SECOND 1
#define FROM_FIRST 2
#define OWNER(k) ((k) == DATA(TO_FIRST) -> FIRST : ((k) == DATA(TO_SECOND) -> SECOND : HUB))
#define ROOM 1
#ifndef MANY
#define MANY 3
#endif
#define N(r) (r == TO_SECOND -> MANY : 2)

#include "wake.inc"

#define full(t, h) (diff(t, h) + 1 > ROOM)

/* Of the two rings that the hub writes: how many messages it has accepted, and placed. */
byte accepted[2], placed[2];
byte taken[2];
bool late, answered;

#define left(r) (placed[r] < accepted[r])
#define posted_all(r) (accepted[r] == N(r))
#define through(r) (taken[r] == N(r))

/* Places what there is room for. */
inline flush(r) {
    do
    :: left(r) ->
        peer_h = head[r];
        if
        :: !full(t[r], peer_h) ->
            d_step { placed[r]++; peer_h = 0 };
            place(r, t[r], 1, placed[r]);
            t[r] = plus(t[r], 1);
            store_and_wake(tail[r], t[r], DATA(r))
        :: else -> peer_h = 0; break
        fi
    :: else -> break
    od
}

/* [wait.writer_asks] For the next message, not for all that are left: those may never fit. */
#ifdef MUT_ASKS_FOR_ALL
#define target(r) minus(plus(t[r], accepted[r] - placed[r]), ROOM)
#else
#define target(r) minus(plus(t[r], 1), ROOM)
#endif

/* Whether a wait, for data of the first client or for room towards it, waits for room of a ring. */
#if defined(MUT_DATA_ONLY)
#define asks(r) (left(r) && !reads)
#elif defined(MUT_OWN_RING_ONLY)
#define asks(r) (left(r) && r == TO_FIRST)
#else
#define asks(r) left(r)
#endif

inline look_for_room(r) {
    if
    :: !found && asks(r) -> peer_h = head[r]; found = !full(t[r], peer_h); peer_h = 0
    :: else
    fi
}

/* Sleeps once, for what the call waits for and for room of each ring in which something is left,
 * and places what it can. */
inline sleep_once() {
    load_bell(HUB);
    if
    :: reads -> arm(DATA(FROM_FIRST), plus(h, 1))
    :: else
    fi;
    if
    :: asks(TO_FIRST) -> arm(SPACE(TO_FIRST), target(TO_FIRST))
    :: else
    fi;
    if
    :: asks(TO_SECOND) -> arm(SPACE(TO_SECOND), target(TO_SECOND))
    :: else
    fi;
    /* [wait.recheck] */
    if
    :: reads -> found = (tail[FROM_FIRST] != h)
    :: else
    fi;
#ifndef MUT_NO_RECHECK
    look_for_room(TO_FIRST);
    look_for_room(TO_SECOND);
#endif
    if
    :: !found -> wait(HUB)
    :: else -> found = false
    fi;
    d_step {
        disarm(DATA(FROM_FIRST));
        disarm(SPACE(TO_FIRST));
        disarm(SPACE(TO_SECOND))
    };
#if defined(MUT_PLACES_OWN_ONLY)
    flush(TO_FIRST)
#elif !defined(MUT_PLACES_NOTHING)
    flush(TO_FIRST);
    flush(TO_SECOND)
#endif
}

proctype hub() {
    byte t[2], h = START, peer_h, w, got, i, size, what;
    bool reads, found;
    d_step { t[0] = START; t[1] = START };

    do
    :: !posted_all(TO_SECOND) -> accepted[TO_SECOND]++; flush(TO_SECOND)
    :: posted_all(TO_SECOND) && !posted_all(TO_FIRST) -> accepted[TO_FIRST]++; flush(TO_FIRST)
    :: posted_all(TO_FIRST) ->
        reads = reads || !late || !left(TO_FIRST);
        if
        :: reads && tail[FROM_FIRST] != h -> break
        :: else -> sleep_once()
        fi
    od;
    take(FROM_FIRST, h, size, what);
    h = plus(h, size);
    head[FROM_FIRST] = h;
    answered = true
}

inline take_one(r) {
    do
    :: peer_t = tail[r];
        if
        :: peer_t != h -> break
        :: else
        fi;
        load_bell(FIRST + r);
        arm(DATA(r), plus(h, 1));
        peer_t = tail[r];
        if
        :: peer_t == h -> wait(FIRST + r)
        :: else
        fi;
        disarm(DATA(r))
    od;
    peer_t = 0;
    take(r, h, size, what);
    d_step {
        taken[r]++;
        assert(what == taken[r]);                       /* In the order of the posts. */
        h = plus(h, size);
        what = 0; size = 0
    };
    store_and_wake(head[r], h, SPACE(r))
}

proctype client(byte r) {
    byte h = START, peer_t, w, got, i, size, what;
    if
    :: r == TO_FIRST && late -> through(TO_SECOND)      /* It learns that elsewhere. */
    :: else
    fi;
    do
    :: !through(r) -> take_one(r)
    :: else -> break
    od;
    if
    :: r == TO_FIRST ->
        through(TO_SECOND);
        place(FROM_FIRST, START, 1, 1);
        store_and_wake(tail[FROM_FIRST], plus(START, 1), DATA(FROM_FIRST))
    :: else
    fi
}

init {
    byte i;
    begin();
    if
    :: late = true
    :: true
    fi;
    atomic { run hub(); run client(TO_FIRST); run client(TO_SECOND) };
    _nr_pr == 1;
    assert(answered && !left(TO_FIRST) && !left(TO_SECOND));
    i = 0;
    do
    :: i < 2 * RINGS -> assert(wants[i] == 0); i++
    :: else -> break
    od
}
