/*
 * A hub with two clients and both directions: four rings, one bell, waits for up to four things.
 *
 * The hub sends requests to both clients and reads their replies, in any order, and holds back what
 * it has finished and what it has released; but not over a wait, whatever it waits for: not in the
 * other port's rings either ([port.hub_publish]). Each client answers one request after the other.
 * The first client takes no request before the second one has answered as many, which it learns
 * elsewhere: so the hub may wait for the one while it is the other that has to go on.
 *
 * Only the hub sleeps. A client blocks until there is something: how it would sleep is the business
 * of `park` and `space`.
 */
#define ENDS 3
#define RINGS 4
#define CAP 2
#define SPURIOUS 0
#define HUB 0
/* [port.hub_layout] */
#define TO(c) (2 * (c))
#define FROM(c) (2 * (c) + 1)
#define OWNER(k) HUB
#define ROOM 1
#define N 2

#include "wake.inc"

#define full(t, h) (diff(t, h) + 1 > ROOM)

byte sent[2], replied[2], got_replies[2];

/* What the hub can wait for. */
#define ROOM_0 1
#define ROOM_1 2
#define DATA_0 4
#define DATA_1 8
#define is_some(flag, condition) (condition -> flag : 0)
#define expects(c) (got_replies[c] < sent[c])
#define USEFUL \
    (is_some(ROOM_0, sent[0] < N) + is_some(ROOM_1, sent[1] < N) + \
     is_some(DATA_0, expects(0)) + is_some(DATA_1, expects(1)))

/* And what of it comes without more help from the hub. */
#define SURE \
    (is_some(ROOM_0, sent[0] < N && sent[1] >= sent[0]) + is_some(ROOM_1, sent[1] < N) + \
     is_some(DATA_0, expects(0) && sent[1] > got_replies[0] && got_replies[1] >= got_replies[0]) + \
     is_some(DATA_1, expects(1)))

inline publish(c) {
    tail[TO(c)] = t[c]                                  /* The clients need no ring. */
}

inline give_back(c) {
    head[FROM(c)] = h[c]
}

/* Whether a wait concerns a client. */
#define room_flag(c) (c == 0 -> ROOM_0 : ROOM_1)
#define data_flag(c) (c == 0 -> DATA_0 : DATA_1)
#define concerns(c) (flags & (room_flag(c) + data_flag(c)))

inline settle(c) {
#ifdef MUT_PUBLISHES_ONE
    if
    :: concerns(c) -> publish(c)
    :: else
    fi;
#else
    publish(c);
#endif
#ifdef MUT_GIVES_BACK_ONE
    if
    :: concerns(c) -> give_back(c)
    :: else
    fi
#else
    give_back(c)
#endif
}

inline arm_if(flag, k, position) {
    if
    :: flags & flag -> arm(k, position)
    :: else
    fi
}

inline look_for_room(flag, c) {
    if
    :: !found && (flags & flag) -> found = !full(t[c], head[TO(c)])
    :: else
    fi
}

inline look_for_data(flag, c) {
    if
    :: !found && (flags & flag) -> found = (tail[FROM(c)] != h[c])
    :: else
    fi
}

inline sleep_once() {
    settle(0);
    settle(1);
    load_bell(HUB);
    arm_if(ROOM_0, SPACE(TO(0)), minus(plus(t[0], 1), ROOM));
    arm_if(ROOM_1, SPACE(TO(1)), minus(plus(t[1], 1), ROOM));
    arm_if(DATA_0, DATA(FROM(0)), plus(h[0], 1));
    arm_if(DATA_1, DATA(FROM(1)), plus(h[1], 1));
#ifndef MUT_RECHECK_DATA_ONLY
    look_for_room(ROOM_0, 0);
    look_for_room(ROOM_1, 1);
#endif
#ifndef MUT_RECHECK_ROOM_ONLY
    look_for_data(DATA_0, 0);
    look_for_data(DATA_1, 1);
#endif
    if
    :: !found -> wait(HUB)
    :: else -> found = false
    fi;
    d_step {
        disarm(SPACE(TO(0)));
        disarm(SPACE(TO(1)));
        disarm(DATA(FROM(0)));
        disarm(DATA(FROM(1)))
    };
    flags = 0;
    woken = true                                        /* It now takes what it has waited for. */
}

#define can_write(c) (sent[c] < N && !full(t[c], head[TO(c)]))
#define can_read(c) (expects(c) && tail[FROM(c)] != h[c])

inline write(c) {
    sent[c]++;
    place(TO(c), t[c], 1, sent[c]);
    t[c] = plus(t[c], 1);
    woken = false
}

inline read(c) {
    take(FROM(c), h[c], size, what);
    d_step {
        got_replies[c]++;
        assert(what == got_replies[c]);
        h[c] = plus(h[c], size);
        what = 0; size = 0;
        woken = false
    }
}

/* Looks before it waits, and takes what a wait was for. */
#define idle (!woken && flags == 0)

proctype hub() {
    byte t[2], h[2], flags, w, got, i, size, what;
    bool found, woken;
    d_step { t[0] = START; t[1] = START; h[0] = START; h[1] = START };
    do
    :: flags == 0 && can_write(0) -> write(0)
    :: flags == 0 && can_write(1) -> write(1)
    :: flags == 0 && can_read(0) -> read(0)
    :: flags == 0 && can_read(1) -> read(1)
    /* A blocking read; a blocking write, with an inbox for replies; a wait for everything. */
    :: idle && (SURE & DATA_0) -> flags = DATA_0
    :: idle && (SURE & ROOM_0) -> flags = (ROOM_0 + DATA_0) & USEFUL
    :: idle && SURE -> flags = USEFUL
    :: flags != 0 -> sleep_once()
    :: woken && !can_write(0) && !can_read(0) && !can_write(1) && !can_read(1) -> woken = false
    :: got_replies[0] == N && got_replies[1] == N -> break
    od;
    head[FROM(0)] = h[0];
    head[FROM(1)] = h[1]
}

proctype client(byte c) {
    byte t = START, h = START, w, got, i, size, what;
    do
    :: replied[c] < N ->
        c == 1 || replied[1] > replied[0];              /* It learns that elsewhere. */
        tail[TO(c)] != h;
        take(TO(c), h, size, what);
        d_step {
            assert(what == replied[c] + 1);
            h = plus(h, size);
            what = 0; size = 0
        };
        store_and_wake(head[TO(c)], h, SPACE(TO(c)));
        !full(t, head[FROM(c)]);
        place(FROM(c), t, 1, replied[c] + 1);
        replied[c]++;
        t = plus(t, 1);
        store_and_wake(tail[FROM(c)], t, DATA(FROM(c)))
    :: else -> break
    od
}

init {
    byte i;
    begin();
    atomic { run hub(); run client(0); run client(1) };
    _nr_pr == 1;
    assert(replied[0] == N && replied[1] == N);
    i = 0;
    do
    :: i < RINGS -> assert(head[i] == tail[i] && wants[DATA(i)] == 0 && wants[SPACE(i)] == 0); i++
    :: else -> break
    od
}
