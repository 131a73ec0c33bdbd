/*
 * The mailbox: one part under way at a time, and a word that says whose turn it is.
 *
 * The writer sends three payloads, the second in two parts; the reader takes them; other threads of
 * ours, one for each endpoint of ours, may close at any step. ORIGINAL_WRITER or ORIGINAL_READER
 * puts an endpoint of the original in the place of one of ours: it stores `signal` plainly, so that
 * it may overwrite a close, notifies one sleeper, sleeps without slices, looks at `status` before a
 * payload and where `signal` is -1 only, and closes by storing -1 in all words, in order, where its
 * event loop turns. Its reader may leave a sleeper behind whose caller has gone.
 *
 * A sleep of ours goes on by a notify. Only beside the original's reader may a slice end, and only
 * when nobody else can move: an assertion then shows that a close is the reason.
 */
#if defined(ORIGINAL_WRITER) || defined(ORIGINAL_READER)
#define ORIGINAL
#endif
#if defined(ORIGINAL_READER) || defined(MUT_TWO_SLEEPERS)
#define SOME_FORGET
#endif

#define ACTIVE 0
#define MAY_WRITE 0
#define MAY_READ 1
#define DISPOSED 255

#define PAYLOADS 3
#define PARTS(p) ((p) == 2 -> 2 : 1)
#define TOTAL 4
#define TORN 254

#define WRITER 1
#define READER 2
#define FORGOTTEN 4

byte status, signal, length, part_count, part_index;

/* The byte area: the number of the part that it holds, from 1, which is also its `length`. */
byte area;

/* Who sleeps on `signal`. */
byte sleepers;

/* What will end a sleep without a notify, chosen before anything else happens, nothing included:
 * what is still to come would hide that a sleeper is lost. */
bool spurious, forgets, leaves;

/* Ghosts. */
byte given, taken, delivered;
bool closed;
/* A plain store of the original has overwritten a close, and it did not look at `status` since: it
 * may then sleep for ever. That is the original's own fault, and the only one allowed here. */
bool overwrote;

inline notify_all() {
#ifdef MUT_NOTIFY_ONE
    notify_one()
#else
    sleepers = 0
#endif
}

/* Some sleeper, whichever. */
inline notify_one() {
    if
    :: d_step { sleepers & WRITER -> sleepers = sleepers & ~WRITER }
    :: d_step { sleepers & READER -> sleepers = sleepers & ~READER }
#ifdef SOME_FORGET
    :: d_step { sleepers & FORGOTTEN -> sleepers = sleepers & ~FORGOTTEN }
#endif
    :: sleepers == 0
    fi
}

/* [mailbox.wait] Comparing and falling asleep are one step. */
inline fall_asleep(me, seen) {
    d_step {
        if
#ifdef MUT_WAIT_BLIND
        :: true -> sleepers = sleepers | me
#else
        :: signal == seen -> sleepers = sleepers | me
        :: else
#endif
        fi
    }
}

/* [mailbox.recheck] The wake that does not come: only because a close was overwritten. */
#if defined(ORIGINAL_READER) && !defined(MUT_NO_SLICE)
#define SLICE(me) :: d_step { timeout && (sleepers & me) -> \
            assert(status == DISPOSED); sleepers = sleepers & ~me }
#else
#define SLICE(me)
#endif

inline our_sleep(me, seen) {
    fall_asleep(me, seen);
    if
    :: !(sleepers & me)
    :: d_step { (sleepers & me) && spurious -> spurious = false; sleepers = sleepers & ~me }
#ifdef MUT_TWO_SLEEPERS
    /* [mailbox.one_waiter] */
    :: d_step { (sleepers & me) && forgets ->
            forgets = false;
            sleepers = (sleepers & ~me) | FORGOTTEN }
#endif
    SLICE(me)
    fi
}

/* [mailbox.wait] [mailbox.recheck] */
inline our_wait(me, turn) {
    do
    :: s = signal;
        if
        :: s == turn || s == DISPOSED -> break
        :: else
        fi;
        our_sleep(me, s);
#ifndef MUT_STATUS_ASLEEP
        st = status;
#endif
        if
        :: st == DISPOSED -> s = DISPOSED; break
        :: else
        fi
    od;
    st = 0
}

/* [mailbox.signal_exchange] What fails finds a close and nothing else. */
inline exchange(from, to) {
#ifdef MUT_PLAIN_SIGNAL
    signal = to;
    s = from
#else
    d_step {
        s = signal;
        if
        :: s == from -> signal = to
        :: else -> assert(s == DISPOSED)
        fi
    }
#endif
}

/* [mailbox.close] `status` first, then `signal`, then the notify, and no other word. */
inline our_close() {
    closed = true;
#if !defined(MUT_CLOSE_SIGNAL_FIRST) && !defined(MUT_CLOSE_SIGNAL_ONLY)
    status = DISPOSED;
#endif
    signal = DISPOSED;
#ifdef MUT_CLOSE_SIGNAL_FIRST
    status = DISPOSED;
#endif
#ifdef MUT_CLOSE_ALL_WORDS
    length = DISPOSED;
    part_count = DISPOSED;
    part_index = DISPOSED;
#endif
#ifdef MUT_CLOSE_SILENT
    skip
#else
    notify_all()
#endif
}

proctype closer() {
    if
    :: our_close()
    :: true
    fi
}

inline store_words() {
    part_count = PARTS(payload);
    part_index = index;
    length = given + 1
}

inline next_part() {
    d_step {
        index++;
        if
        :: index == PARTS(payload) -> index = 0; payload++
        :: else
        fi
    }
}

#ifndef ORIGINAL_WRITER
proctype writer() {
    byte s, st, payload = 1, index;
    do
    :: payload <= PAYLOADS ->
        our_wait(WRITER, MAY_WRITE);
        if
        :: s == DISPOSED -> break
        :: else
        fi;
        area = TORN;
        area = given + 1;
#ifndef MUT_SIGNAL_BEFORE_WORDS
        store_words();
#endif
#ifdef MUT_NOTIFY_FIRST
        notify_all();
#endif
        atomic {
            exchange(MAY_WRITE, MAY_READ);
            if
            :: s == MAY_WRITE -> given++
            :: else -> break
            fi
        };
#ifdef MUT_SIGNAL_BEFORE_WORDS
        d_step { given--; s = 0 };
        store_words();
        given++;
#endif
#ifndef MUT_NOTIFY_FIRST
        notify_all();
#endif
#ifdef MUT_GIVES_UP
        /* [mailbox.write_all] Its deadline passes: it begins with the next payload. */
        if
        :: index + 1 < PARTS(payload) -> index = PARTS(payload) - 1
        :: true
        fi;
#endif
        next_part()
    :: else -> break
    od
}
#endif

#ifndef ORIGINAL_READER
proctype reader() {
    byte s, st, l, c, x, copy, payload = 1, index;
    do
    :: payload <= PAYLOADS ->
        our_wait(READER, MAY_READ);
        if
        :: s == DISPOSED -> break
        :: else
        fi;
#ifdef MUT_STATUS_BEFORE_WORDS
        st = status;
#endif
        l = length;
        c = part_count;
        x = part_index;
#if !defined(MUT_STATUS_BEFORE_WORDS) && !defined(MUT_NO_STATUS)
        st = status;                                    /* [mailbox.read_status] */
#endif
        if
        :: st == DISPOSED -> break
        :: else
        fi;
        /* [mailbox.check] Never a corrupt peer. */
        assert(l == taken + 1 && c == PARTS(payload) && x == index);
#ifdef MUT_TAKE_BEFORE_COPY
        exchange(MAY_READ, MAY_WRITE);
        notify_all();
#endif
        copy = area;
        assert(copy == l && area == copy);              /* Whole, and the next one. */
        d_step { l = 0; c = 0; x = 0; copy = 0 };
#ifndef MUT_TAKE_BEFORE_COPY
        exchange(MAY_READ, MAY_WRITE);
        if
        :: s == MAY_READ -> notify_all()
        :: else
        fi;
#endif
        d_step {
            taken++;
            if
#ifdef MUT_DROPS_LAST
            :: s == DISPOSED
#endif
            /* [mailbox.complete] */
            :: index + 1 == PARTS(payload) -> delivered++
            :: else
            fi
        };
        next_part();
        if
        :: s == DISPOSED -> break
        :: else
        fi
    :: else -> break
    od
}
#endif

#ifdef ORIGINAL
#include "mailbox_original.inc"
#endif

init {
    if
    :: spurious = true
    :: true
    fi;
#ifdef SOME_FORGET
    if
    :: forgets = true
    :: true
    fi;
#endif
#ifdef ORIGINAL
    if
    :: leaves = true
    :: true
    fi;
#endif
    atomic {
        run writer();
        run reader();
        run closer()
#ifndef ORIGINAL
        ; run closer()
#endif
    };
    _nr_pr == 1;                                        /* Every waiter was released. */
    assert(given <= taken + 1);                         /* Only the part under way may be lost. */
    assert(closed || (taken == TOTAL && delivered == PAYLOADS));
    assert(delivered == (taken > 1 -> taken - 1 : taken))
}
