/*
 * A property: a writer that sets a value of two halves, and two watchers that get it and wait for
 * the next.
 *
 * The writer exchanges the sequence of a slot, stores both halves, stores the version, and takes
 * out the bits of those who watch, to ring them. Each watcher gets what is there, with the last
 * look at the sequence, and waits with its bit set until the version is another. It ends when the
 * writer's state is final and nothing new is there. A value whose halves differ was torn. The slots
 * are two here, the fewest that there may be.
 *
 * With DEATH, the writer dies between any two steps. Whoever then gets must get at once; and the
 * state becomes final by somebody who rings no watcher, which the end of a slice finds.
 */
#ifdef MUT_ONE_SLOT
#define SLOTS 1
#else
#define SLOTS 2
#endif
#define SETS 3
#define CAP 4
#define RINGS 1
#define ENDS 3
#define SPURIOUS 0
#define OWNER(k) k

#include "wake.inc"

#define ATTACHED 0
#define FINAL 1

#define slot(v) ((v) % SLOTS)
#define bit(e) (1 << ((e) - 1))
#define ALL_BITS 3

byte sequence[SLOTS];
byte half[2 * SLOTS];
byte version;
byte watchers;
bool state;
bool dead;

/* Ghosts: whose bit is set, and what each watcher has got last. */
bool watching[ENDS];
byte got_last[ENDS];

inline take_bits() {
#ifdef MUT_NO_WAKE
    skip
#else
    bits = watchers;
    if
    :: bits != 0 ->
#ifdef MUT_TAKEN_BY_STORE
        d_step { watchers = 0; watching[1] = false; watching[2] = false };
#else
        d_step {
            bits = watchers;
            watchers = 0;
            assert((!(bits & 1) || watching[1]) && (!(bits & 2) || watching[2]));
            if
            :: bits & 1 -> watching[1] = false
            :: else
            fi;
            if
            :: bits & 2 -> watching[2] = false
            :: else
            fi
        };
#endif
        if
        :: bits & 1 ->
            ring(1)
#ifdef MUT_RINGS_ONE
            ; bits = 0
#endif
        :: else
        fi;
        if
        :: bits & 2 -> ring(2)
        :: else
        fi;
        bits = 0
    :: else
    fi
#endif
}

inline write_halves() {
    half[2 * slot(v)] = v;
    half[2 * slot(v) + 1] = v
}

proctype writer() {
    byte v, bits;
    bool patient;
    {
        do
        :: v < SETS ->
            v++;
#ifndef MUT_SEQUENCE_LATE
            sequence[slot(v)] = v;
#endif
#ifdef MUT_WAKE_FIRST
            write_halves();
            take_bits();
            version = v
#else
#ifdef MUT_PUBLISH_FIRST
            version = v;
            write_halves();
#else
            write_halves();
#ifdef MUT_SEQUENCE_LATE
            sequence[slot(v)] = v;
#endif
            version = v;
#endif
            take_bits()
#endif
        :: else -> break
        od;
#ifndef DEATH
        /* It closes at once, or when it has learned elsewhere that all have what it has set. */
        if
        :: patient = true
        :: skip
        fi;
        !patient || (got_last[1] == SETS && got_last[2] == SETS);
        patient = false;
        state = FINAL;
#ifndef MUT_CLOSE_SILENT
        take_bits()
#endif
#else
        dead = true
#endif
    } unless { dead };
    d_step { v = 0; bits = 0 }
}

#ifdef DEATH
proctype death() {
    dead = true
}
#endif

/* Gets what is there; both halves are 0 where it has to begin again. */
inline get(e) {
    do
    ::  d_step { v = version; was_dead = dead };
        if
        :: v == 0 -> break
        :: else
        fi;
#ifdef MUT_CHECK_FIRST
        s = sequence[slot(v)];
#endif
        x = half[2 * slot(v)];
        y = half[2 * slot(v) + 1];
#ifndef MUT_CHECK_FIRST
        s = sequence[slot(v)];
#endif
#ifdef MUT_NO_CHECK
        s = v;
#endif
        if
        :: s == v ->
            assert(x == v && y == v);                   /* [property.whole] */
            break
        :: s != v ->
            assert(!was_dead);                          /* Nobody waits for a writer that died. */
            assert(version != v)                        /* [property.fault] Or it lies. */
        fi
    od;
    atomic {
        assert(v >= got_last[e]);
        got_last[e] = v;
        v = 0; x = 0; y = 0; s = 0; was_dead = false
    }
}

inline watch(e) {
#ifdef MUT_BITS_STORED
    b = watchers;
    d_step { watchers = b | bit(e); watching[e] = true };
    b = 0
#else
    d_step { watchers = watchers | bit(e); watching[e] = true }
#endif
}

inline unwatch(e) {
#if defined(MUT_CLEARED_BY_STORE)
    b = watchers;
    d_step { watchers = b & ~bit(e); watching[e] = false };
    b = 0;
#elif defined(MUT_CLEARS_ALL)
    d_step { watchers = 0; watching[1] = false; watching[2] = false };
#elif defined(MUT_NEVER_CLEARED)
    watching[e] = false;
#else
    d_step { watchers = watchers & ~bit(e); watching[e] = false };
#endif
    moved[e] = moved[e] | ME
}

/* Sleeps; where somebody may have died, for no longer than a slice. */
inline sleep(e) {
#ifdef DEATH
    if
    :: moved[e] & ME
    :: d_step { !(moved[e] & ME) -> waiters[e] = ME };
        if
        :: waiters[e] == 0
        /* [property.slice] Nothing else ends this, and only where the writer has died. */
        :: d_step { waiters[e] != 0 && timeout -> assert(dead); waiters[e] = 0 };
#ifndef MUT_STATE_UNSEEN
            state = FINAL
#endif
        fi
    fi
#else
    wait(e)
#endif
}

proctype watcher(byte e) {
    byte v, x, y, s, b;
    bool was_dead, over;
    do
    :: !over ->
        get(e);
#ifdef MUT_SET_ONCE
        watch(e);
#endif
        do
        ::
#ifndef MUT_BELL_LATE
            load_bell(e);
#endif
#ifndef MUT_SET_ONCE
            watch(e);
#endif
#ifndef MUT_NO_RECHECK
            if
            :: version != got_last[e] -> break
            :: else
            fi;
            if
            :: state == FINAL ->
#ifndef MUT_NO_LAST_LOAD
                if
                :: version != got_last[e]
                :: else -> over = true              /* [property.gone] */
                fi;
#else
                over = true;
#endif
                break
            :: else
            fi;
#endif
#ifdef MUT_BELL_LATE
            load_bell(e);
#endif
            sleep(e)
#ifdef MUT_NO_RECHECK
            ;
            if
            :: version != got_last[e] || state == FINAL -> break
            :: else
            fi
#endif
        od;
        unwatch(e)
    :: else -> break
    od;
#ifndef MUT_NO_LAST_LOAD
    assert(dead || got_last[e] == SETS)
#else
    assert(got_last[e] == version)
#endif
}

init {
    byte i;
    begin();
    atomic {
        run writer();
        run watcher(1);
        run watcher(2);
#ifdef DEATH
        run death()
#endif
    };
    _nr_pr == 1;
    assert(got_last[1] == version && got_last[2] == version)
}
