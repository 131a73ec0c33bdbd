/*
 * A fanout in mode lose: a writer that never waits, and two readers that copy, and then look
 * whether what they have copied was overwritten meanwhile.
 *
 * A message is two words, which both hold its number, and its place is its number modulo the
 * capacity. Positions do not wrap.
 */
#define CAP 2
#define N 3

byte tail;
byte floor;
byte cell[2 * CAP];
byte readers_want;
bool moved[2];
bool asleep[2];
byte taken[2];
byte lost[2];

inline ring(e) {
    moved[e] = true;
    asleep[e] = false
}

inline wait(e) {
    if
    :: moved[e]
    :: d_step { !moved[e] -> asleep[e] = true };
        !asleep[e]
    fi
}

inline wake_readers() {
    x = readers_want;
    if
    :: x != 0 ->
        d_step { x = readers_want; readers_want = 0 };
        if
        :: x & 1 -> ring(0)
        :: else
        fi;
        if
        :: x & 2 -> ring(1)
        :: else
        fi
    :: else
    fi;
    x = 0
}

inline raise_floor() {
    if
    :: n >= CAP -> floor = n + 1 - CAP
    :: else
    fi
}

proctype writer() {
    byte n, x;
    do
    :: n < N ->
#ifndef MUT_FLOOR_LATE
        raise_floor();                                  /* [fanout.floor] */
#endif
        cell[2 * (n % CAP)] = n;
        cell[2 * (n % CAP) + 1] = n;
#ifdef MUT_FLOOR_LATE
        raise_floor();
#endif
        n++;
        tail = n;
        wake_readers()
    :: else -> break
    od
}

/* [fanout.overrun] */
inline overrun() {
    d_step {
        lost[r] = lost[r] + f - position;
        position = f
    }
}

proctype reader(byte r) {
    byte position, t, f, first, second;
    do
    :: position == N -> break
    :: position == t && position < N ->
#ifdef MUT_FLOOR_BEFORE_TAIL
        f = floor;
        t = tail;
#else
        t = tail;                                       /* [fanout.tail] */
        f = floor;
#endif
        if
        :: f > position -> overrun(); t = position
        :: else ->
            assert(t >= position && t - position <= CAP);
            if
            :: t == position ->
                moved[r] = false;
                readers_want = readers_want | (1 << r);
#ifndef MUT_NO_RECHECK
                t = tail;
#endif
                if
                :: t == position -> wait(r)
                :: else
                fi;
                readers_want = readers_want & (3 - (1 << r));
                t = position
            :: else
            fi
        fi;
        f = 0
    :: position != t && position < N ->
#ifdef MUT_VALIDATES_FIRST
        f = floor;
#endif
        first = cell[2 * (position % CAP)];
        second = cell[2 * (position % CAP) + 1];
#if !defined(MUT_VALIDATES_FIRST) && !defined(MUT_NO_VALIDATE)
        f = floor;                                      /* [fanout.validate] */
#endif
        if
        :: f > position -> overrun(); t = position
        :: else ->
            d_step {
                assert(first == position && second == position);
                taken[r]++;
                position++
            }
        fi;
        first = 0; second = 0; f = 0
    od
}

init {
    atomic {
        moved[0] = true; moved[1] = true;
        run writer(); run reader(0); run reader(1)
    };
    _nr_pr == 1;
    assert(taken[0] + lost[0] == N && taken[1] + lost[1] == N)
}
