/*
 * Which ring rang: a sleeper with many rings that looks only at those whose writers have rung.
 *
 * A hub reads the rings of its writers. It keeps the `wants` of a ring armed from one wait to the
 * next for as long as nothing has come of it, and each ring of its bell comes with a bit that says
 * whose it is. A wait loads the bell, takes the bits out, and looks at those rings alone. Each
 * writer publishes its messages, and when they were read it changes its state to closed, which
 * rings too. At some time the hub also blocks for one ring alone.
 *
 * With DEATH, the first writer dies at any step: also between taking the word and setting its bit,
 * or between bit and bell. What it had published then is found at the end of a slice, where the hub
 * looks at everything.
 */
#define CAP 4
#define WRITERS 2
#define ENDS 1
#define RINGS WRITERS
#define SPURIOUS 0
#define HUB 0
#define OWNER(k) HUB
/* How many messages the first writer writes; the others write one. */
#ifndef FIRST
#ifdef DEATH
#define FIRST 1
#else
#define FIRST 2
#endif
#endif
#define N(r) (r == 0 -> FIRST : 1)

#include "wake.inc"

#define ATTACHED 0
#define FINAL 1

/* In the hub's record: a bit for each writer. */
byte rung;
#define bit(r) (1 << (r))

byte state[WRITERS];
bool dead[WRITERS];
byte received[WRITERS];

/* Whose final state the hub has seen, and how many. */
bool through[WRITERS];
byte done;

/* Says who rings, and rings. */
inline set_bit(r) {
#ifdef MUT_OR_STORED
    b = rung;
    rung = b | bit(r);
    b = 0
#else
    rung = rung | bit(r)
#endif
}

inline ring_with_bit(r) {
#ifdef MUT_BELL_BEFORE_BIT
    ring(HUB);
    set_bit(r)
#else
    set_bit(r);
    ring(HUB)
#endif
}

inline close(r) {
    state[r] = FINAL;
#ifdef MUT_STATE_WITHOUT_BIT
    ring(HUB)
#else
    ring_with_bit(r)
#endif
}

proctype writer(byte r) {
    byte t = START, sent, w, got, b, i;
    {
        do
        :: sent < N(r) ->
            sent++;
            place(r, t, 1, sent);
            t = plus(t, 1);
            tail[r] = t;
            w = wants[DATA(r)];
            if
            :: w != 0 && reached(t, w) ->
                d_step {
                    w = 0;
                    got = wants[DATA(r)];
                    wants[DATA(r)] = 0;
                    if
                    :: got != 0 -> assert(armed[DATA(r)]); armed[DATA(r)] = false
                    :: else
                    fi
                };
                if
                :: got != 0 -> got = 0; ring_with_bit(r)
                :: else
                fi
            :: else -> w = 0
            fi
        :: else -> break
        od;
        received[r] == N(r);                            /* It learns that elsewhere. */
        close(r)
    } unless { dead[r] };
    d_step { t = 0; sent = 0; w = 0; got = 0; b = 0; i = 0 }
}

#ifdef DEATH
proctype death() {
    dead[0] = true
}
#endif

inline take_all(r) {
    do
    :: t != h[r] ->
        take(r, h[r], size, what);
        d_step {
            received[r]++;
            assert(what == received[r]);
            h[r] = plus(h[r], size);
            what = 0; size = 0
        }
    :: else -> break
    od
}

/* Takes what is there, arms the word again, and looks once more. */
inline look_at(r) {
    t = tail[r];
    take_all(r);
#ifndef MUT_NOT_REARMED
    arm(DATA(r), plus(h[r], 1));
#endif
#ifndef MUT_NO_RECHECK
    do
    :: t = tail[r];
        if
        :: t == h[r] -> break
        :: else
        fi;
        take_all(r);
        arm(DATA(r), plus(h[r], 1))
    od;
#endif
    t = 0;
    if
    :: state[r] == FINAL && !through[r] ->
        through[r] = true;
        done++
    :: else
    fi
}

#define ALL_BITS 3

proctype hub() {
    byte h[WRITERS], bits, t, r, i, size, what;
    bool blocked;
    d_step {
        do
        :: i < WRITERS -> h[i] = START; arm(DATA(i), plus(START, 1)); i++
        :: else -> break
        od;
        i = 0
    };
    bits = ALL_BITS;                                    /* The first time it looks at everything. */
    do
    :: bits != 0 ->
        do
        :: r < WRITERS ->
            if
            :: bits & bit(r) ->
                look_at(r)
#ifdef MUT_STOPS_EARLY
                ; r = WRITERS - 1
#endif
            :: else
            fi;
            r++
        :: else -> break
        od;
#ifdef MUT_CLEARED_LATER
        rung = 0;
#endif
        atomic { bits = 0; r = 0 }
#ifndef DEATH
    /* Once, a blocking read of the first ring alone, which disarms its word. */
    :: bits == 0 && !blocked && received[0] < FIRST ->
        blocked = true;
        do
        :: t = tail[0];
            if
            :: t != h[0] -> break
            :: else
            fi;
            load_bell(HUB);
            arm(DATA(0), plus(h[0], 1));
            t = tail[0];
            if
            :: t == h[0] -> wait(HUB)
            :: else
            fi;
            disarm(DATA(0))
        od;
        take_all(0);
        t = 0;
#ifndef MUT_NOT_LOOKED_AT
        bits = bit(0)
#endif
#endif
    :: bits == 0 && done == WRITERS -> break
    :: bits == 0 && done < WRITERS ->
#ifndef MUT_BITS_BEFORE_BELL
        load_bell(HUB);
#endif
#if defined(MUT_TAKEN_BY_STORE)
        bits = rung;
        rung = 0;
#elif defined(MUT_CLEARED_LATER)
        bits = rung;
#else
        d_step { bits = rung; rung = 0 };
#endif
#ifdef MUT_BITS_BEFORE_BELL
        load_bell(HUB);
#endif
        if
        :: bits == 0 ->
#ifdef DEATH
            if
            :: moved[HUB] & ME
            :: d_step { !(moved[HUB] & ME) -> waiters[HUB] = ME };
                if
                :: waiters[HUB] == 0
                /* [wait.slice] Nothing else ends this, and only where somebody has died. */
                :: d_step { waiters[HUB] != 0 && timeout -> assert(dead[0]); waiters[HUB] = 0 };
#ifndef MUT_NO_FULL_LOOK
                    state[0] = FINAL;                   /* [wait.liveness] */
                    bits = ALL_BITS
#endif
                fi
            fi
#else
            wait(HUB)
#endif
        :: else
        fi
    od
}

init {
    byte i;
    begin();
    atomic {
        run hub();
        do
        :: i < WRITERS -> run writer(i); i++
        :: else -> break
        od;
#ifdef DEATH
        run death()
#endif
    };
    _nr_pr == 1;
    i = 0;
    do
    :: i < WRITERS ->
        assert(through[i] && tail[i] == plus(START, received[i]));
        assert(dead[i] || received[i] == N(i));
        i++
    :: else -> break
    od
}
