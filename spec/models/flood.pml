/*
 * Two floods that meet: both endpoints of a port write all their messages before they read any.
 *
 * While it waits for room, a writer takes what arrives into its inbox, up to a limit. Side 1 writes
 * exactly what a ring and the other's inbox can hold, side 0 as much or a message more: it is
 * enough that one flood fits, as its writer then begins to read. Where neither does, TOO_MUCH, both
 * wait for ever.
 * One message of each side, chosen at the start, or none, is an error to its reader: it has a place
 * in the inbox like any other, and filling the inbox goes on behind it.
 */
#define ENDS 2
#define RINGS 2
#define CAP 4
#define SPURIOUS 1
/* Endpoint e writes ring e and reads the other one. */
#define OWNER(k) ((k) % 2 == 0 -> 1 - (k) / 2 : (k) / 2)
#define ROOM 1
#define LIMIT 2
#define FITS (ROOM + LIMIT)

#include "wake.inc"

#define full(t, h) (diff(t, h) + 1 > ROOM)

/* How many messages each side writes. */
byte count[ENDS];

byte delivered[ENDS];
byte inbox[ENDS * LIMIT];
byte kept[ENDS];

/* The message that is an error, 0 for none. */
byte bad[ENDS];

inline deliver(e, what) {
    delivered[e]++;
    assert(what == delivered[e])                        /* In order, errors too. */
}

/* Whether it goes on draining. */
#ifdef MUT_ERROR_STOPS
#define has_place(e) (kept[e] < LIMIT && !stopped)
#elif defined(MUT_NO_DRAIN)
#define has_place(e) false
#elif defined(MUT_NO_LIMIT)
#define has_place(e) true
#else
#define has_place(e) (kept[e] < LIMIT)
#endif

/* Takes what one load of `tail` showed, while there is room in the inbox. [port.inbox_fault] */
inline fill(e) {
    peer_t = tail[1 - e];
    filled = false;
    do
    :: peer_t != h && has_place(e) ->
        assert(kept[e] < LIMIT);
        take(1 - e, h, size, what);
        d_step {
            h = plus(h, size);
            filled = true;
            if
#ifdef MUT_ERROR_AT_ONCE
            :: what == bad[1 - e] -> deliver(e, what)
#endif
#ifdef MUT_ERROR_LOST
            :: what == bad[1 - e]
#endif
            :: else -> inbox[e * LIMIT + kept[e]] = what; kept[e]++
            fi;
            size = 0
        };
#ifdef MUT_ERROR_STOPS
        if
        :: what == bad[1 - e] -> stopped = true
        :: else
        fi;
#endif
        what = 0
    :: else -> break
    od;
    peer_t = 0;
#ifdef MUT_HOLD_HEAD
    filled = false;
#endif
    /* [ring.release_all] Before this side waits. */
    if
    :: filled -> filled = false; store_and_wake(head[1 - e], h, SPACE(1 - e))
    :: else
    fi
}

proctype side(byte e) {
    byte t = START, h = START, peer_t, peer_h, sent, w, got, i, size, what;
    bool filled, drains;
#ifdef MUT_ERROR_STOPS
    bool stopped;
#endif
    do
    :: sent < count[e] ->
        peer_h = head[e];
        assert(diff(t, peer_h) <= CAP);
        if
        :: !full(t, peer_h) ->
            d_step { sent++; peer_h = 0 };
            place(e, t, 1, sent);
            t = plus(t, 1);
            store_and_wake(tail[e], t, DATA(e))
        :: else ->
            if
            :: has_place(e) -> fill(e)
            :: else
            fi;
            load_bell(e);
            arm(SPACE(e), minus(plus(t, 1), ROOM));
            /* Below the limit it waits for data too; at the limit, for room alone. */
            drains = has_place(e);
#ifdef MUT_ARM_ROOM_ONLY
            peer_t = h;
#else
            if
            :: drains -> arm(DATA(1 - e), plus(h, 1)); peer_t = tail[1 - e]
            :: else -> peer_t = h
            fi;
#endif
            peer_h = head[e];
            if
            :: full(t, peer_h) && peer_t == h -> wait(e)
            :: else
            fi;
            d_step { peer_t = 0; peer_h = 0 };
            disarm(SPACE(e));
            if
            :: drains -> disarm(DATA(1 - e)); drains = false
            :: else
            fi
        fi
    :: else -> break
    od;
    peer_h = 0;

    do
    :: delivered[e] < count[1 - e] ->
        if
        /* [port.inbox_order] */
#ifdef MUT_INBOX_LAST
        :: kept[e] > 0 && tail[1 - e] == h ->
#else
        :: kept[e] > 0 ->
#endif
            d_step {
                deliver(e, inbox[e * LIMIT]);
                i = 1;
                do
                :: i < kept[e] -> inbox[e * LIMIT + i - 1] = inbox[e * LIMIT + i]; i++
                :: else -> break
                od;
                kept[e]--;
                inbox[e * LIMIT + kept[e]] = 0;
                i = 0
            }
        :: else ->
            peer_t = tail[1 - e];
            if
            :: peer_t != h ->
                take(1 - e, h, size, what);
                d_step {
                    deliver(e, what);
                    h = plus(h, size);
                    what = 0; size = 0; peer_t = 0
                };
                store_and_wake(head[1 - e], h, SPACE(1 - e))
            :: else ->
                load_bell(e);
                arm(DATA(1 - e), plus(h, 1));
                peer_t = tail[1 - e];
                if
                :: peer_t == h -> wait(e)
                :: else
                fi;
                peer_t = 0;
                disarm(DATA(1 - e))
            fi
        fi
    :: else -> break
    od;
    head[1 - e] = h
}

init {
    byte i;
#ifdef MUT_TOO_MUCH
    count[0] = FITS + 1;
    count[1] = FITS + 1;
#else
    select(i : FITS .. FITS + 1);
    count[0] = i;
    count[1] = FITS;
#endif
    select(i : 0 .. FITS);
    bad[0] = i;
    select(i : 0 .. FITS);
    bad[1] = i;
    begin();
    atomic { run side(0); run side(1) };
    _nr_pr == 1;
    assert(delivered[0] == count[1] && delivered[1] == count[0]);
    assert(head[0] == tail[0] && head[1] == tail[1]);
    assert(wants[0] + wants[1] + wants[2] + wants[3] == 0)
}
