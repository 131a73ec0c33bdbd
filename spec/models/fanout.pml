/*
 * A fanout in mode hold: a writer and two readers, which join at any time. With LEAVES, one may
 * leave and join again; with DEATH, one may die at any step. The writer waits for the slowest that
 * counts.
 *
 * A frame is one unit; a cell holds the position of its frame, so that a reader sees whether it is
 * the one that must come. What a reader has begun at, and not yet read, nobody may overwrite. The
 * last frame is the end, for which each message leaves one unit. A reader knows of the end by this
 * frame, or, if it begins after it, by `ended`.
 */
#define CAP 1
#define SIZE (CAP + 1)
#define N 2
#define WRITER 2
#define MOD (4 * SIZE)
#define END MOD
#define START (MOD - 1)
#define diff(a, b) (((a) + MOD - (b)) % MOD)
#define plus(a, n) (((a) + (n)) % MOD)
#define reached(cursor, w) (diff(cursor, (w) - 1) < MOD / 2)

/* `head`: a position is stored with 2 added. */
#define LEFT 0
#define JOINING 1
#define joined(position) ((position) + 2)

byte tail = START;
/* 0, or the position after the end with 1 added. */
byte ended;
byte cell[SIZE];
byte head[2];
/* Of each reader: 0, or a position with 1 added. */
byte writer_wants[2];
/* The bits of `readers_want`: both lie in one word. */
byte readers_want;
bool final, dead;

/* Whether a bell has moved since its owner loaded it, and whether that sleeps. */
bool moved[3];
bool asleep[3];

/* Ghost: what a reader must still find. */
bool holds[2];
byte from[2];

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

/* Behind a store of `head`, the writer is woken by its word. */
inline wake_writer(r, position) {
    w = writer_wants[r];
    if
    :: w != 0 && reached(position, w) ->
        d_step { w = writer_wants[r]; writer_wants[r] = 0 };
        if
        :: w != 0 -> ring(WRITER)
        :: else
        fi
    :: else
    fi;
    w = 0
}

inline join(r) {
#ifdef MUT_ENDED_FIRST
    e = ended;
#endif
#ifdef MUT_JOIN_LATE
    d_step { h = tail; holds[r] = true; from[r] = h };
    head[r] = JOINING;
#else
    head[r] = JOINING;                                  /* [fanout.join] */
    d_step { h = tail; holds[r] = true; from[r] = h };
#endif
    head[r] = joined(h);
    wake_writer(r, h);
#ifndef MUT_ENDED_FIRST
    e = ended;                                          /* [fanout.late] */
#endif
#ifdef MUT_ENDED_ANY
    knows_end = e != 0;
#else
#ifndef MUT_END_UNTOLD
    knows_end = e == h + 1;
#endif
#endif
    e = 0
}

inline leave(r) {
    d_step { head[r] = LEFT; holds[r] = false };
#ifndef MUT_LEAVE_SILENT
    d_step { w = writer_wants[r]; writer_wants[r] = 0 }; /* [fanout.leave] */
    if
    :: w != 0 -> w = 0; ring(WRITER)
    :: else
    fi
#endif
}

inline ask(r) {
#ifdef MUT_WANT_STORED
    readers_want = 1 << r
#else
    readers_want = readers_want | (1 << r)              /* [fanout.ask] */
#endif
}

proctype reader(byte r) {
    byte h, t, w, e;
    bool leaves, knows_end;
    {
#ifdef LEAVES
        if
        :: r == 0 -> leaves = true
        :: true
        fi;
#endif
        join(r);
        do
        :: knows_end -> assert(h == plus(START, N + 1)); break
        :: !knows_end ->
            t = tail;
            assert(diff(t, h) <= SIZE);
            if
#ifdef LEAVES
            :: t != h && leaves ->
                leaves = false;
                t = 0;
                leave(r);
                if
                :: join(r)
                :: true -> break
                fi
#endif
            :: t != h ->
                knows_end = cell[h % SIZE] == END;
                assert(knows_end || cell[h % SIZE] == h);
                d_step { h = plus(h, 1); from[r] = h };
                head[r] = joined(h);                    /* [fanout.release] */
                wake_writer(r, h);
                t = 0
            :: t == h ->
                moved[r] = false;
                ask(r);
#ifndef MUT_NO_RECHECK
                t = tail;
#endif
                if
                :: t == h -> wait(r)
                :: else
                fi;
                readers_want = readers_want & (3 - (1 << r));
                t = 0
            fi
        od;
        t = 0
    } unless {
        dead && r == 1
    };
    holds[r] = false
}

#ifdef DEATH
/* A reader may die at any step; somebody sees it, and marks it failed. */
proctype supervisor() {
    if
    :: d_step { dead = true; holds[1] = false };
        final = true;
#ifndef MUT_STATE_SILENT
        ring(WRITER)
#endif
    :: true
    fi
}
#define is_final(r) ((r) == 1 && final)
#else
#define is_final(r) false
#endif

byte held[2];

/* What a reader holds; nothing where it does not count. */
inline count(r) {
#ifdef MUT_DEAD_COUNTED
    gone[r] = false;
#else
    gone[r] = is_final(r);                              /* [fanout.gone] */
#endif
    if
    :: gone[r]
    :: else ->
        x = head[r];
        if
        :: x == LEFT -> held[r] = t
#ifdef MUT_JOINING_IGNORED
        :: x == JOINING -> held[r] = t
#else
        :: x == JOINING
#endif
        :: else ->
            assert(diff(t, x - 2) <= diff(t, held[r])); /* [fanout.head] */
            held[r] = x - 2
        fi;
        if
        :: x != LEFT && diff(t, held[r]) > used -> slow = r; used = diff(t, held[r])
        :: else
        fi
    fi;
    x = 0
}

inline look() {
    d_step { used = 0; slow = 2 };
    if
    :: !gone[0] -> count(0)
    :: else
    fi;
    if
    :: !gone[1] -> count(1)
    :: else
    fi
}

inline publish(size, content) {
    d_step {
        assert(!holds[0] || diff(t, from[0]) < size);   /* Nothing that is held is overwritten. */
        assert(!holds[1] || diff(t, from[1]) < size);
        cell[t % SIZE] = content
    };
#ifdef MUT_WANT_BEFORE_TAIL
    x = readers_want;
    t = plus(t, 1);
    tail = t;
#else
    t = plus(t, 1);
    tail = t;
    x = readers_want;                                   /* [fanout.wake] */
#endif
    if
    :: x != 0 ->
        d_step { x = readers_want; readers_want = 0 };
        if
        :: x & 1 -> ring(0)
        :: else
        fi;
#ifdef MUT_RINGS_ONE
        x = (x & 1 -> 0 : x);
#endif
        if
        :: x & 2 -> ring(1)
        :: else
        fi;
        x = 0
    :: else
    fi
}

proctype writer() {
    byte t = START, sent, used = CAP, slow = 2, x;
    bool gone[2];
    do
    :: sent < N && used < CAP -> publish(CAP, t); d_step { sent++; used++ }
    :: sent < N && used >= CAP ->
        look();
        if
        :: used >= CAP ->
            moved[WRITER] = false;
#ifdef MUT_ARMS_OTHER
            writer_wants[1 - slow] = plus(t, MOD + 1 - CAP) + 1;
#else
            writer_wants[slow] = plus(t, MOD + 1 - CAP) + 1;
#endif
#ifndef MUT_NO_ROOM_RECHECK
            x = head[slow];
#else
            x = JOINING;
#endif
            if
            :: x != JOINING && (x == LEFT || diff(t, x - 2) < CAP)
            :: else ->
#ifndef MUT_NO_STATE_RECHECK
                if
                :: is_final(slow)
                :: else -> wait(WRITER)
                fi
#else
                wait(WRITER)
#endif
            fi;
            x = 0;
            d_step { writer_wants[0] = 0; writer_wants[1] = 0; slow = 2; used = CAP }
        :: else -> slow = 2
        fi
    :: sent == N -> break
    od;
#ifndef MUT_ENDED_LATE
    ended = plus(t, 1) + 1;                             /* [fanout.ended] */
#endif
    publish(SIZE, END);
#ifdef MUT_ENDED_LATE
    ended = t + 1
#endif
}

init {
    d_step {
        held[0] = START; held[1] = START;
        moved[0] = true; moved[1] = true; moved[2] = true
    };
#ifdef DEATH
    atomic { run writer(); run reader(0); run reader(1); run supervisor() };
#else
    atomic { run writer(); run reader(0); run reader(1) };
#endif
    _nr_pr == 1;
    assert(tail == plus(START, N + 1))
}
