/*
 * Two endpoints of a stream, each of which writes a message of several frames, ends, and reads what
 * the other one writes; credit, `close`, and the end of a byte stream.
 *
 * A unit is 16 bytes. The transport keeps T of them on their way in each direction, and is written
 * and read unit by unit, so that a frame of two units may stand half in it. A message is larger
 * than the window, and the window is no multiple of the largest frame. Messages of one frame are
 * covered: to the protocol the frames of a message differ in nothing but in when they may be cut.
 *
 * FLOOD: both sides write before they read. What side 1 writes fits the window, what side 0 writes
 * does not. MAY_CLOSE: each side may close at any step. DEATH: side 1 may die at any step, and
 * nobody closes.
 */
#ifndef T
#define T 1
#endif
#define WINDOW 3
#define LARGEST 2

/* Frames of side e, and the units of each of them. A flood is read by nobody who writes one. */
#ifdef FLOOD
#define COUNT(e) (e == 0 -> 3 : 1)
#define must_write(e) (next[e] <= COUNT(e))
#else
#ifdef MAY_CLOSE
#define COUNT(e) 2
#else
#define COUNT(e) 3
#endif
#define must_write(e) false
#endif
#define units(n) (n == 2 -> 1 : 2)

#define DATA 1
#define END 2
#define CREDIT 3
#define CLOSE 4

/* What a side writes: a kind, the number of a frame or a position, and the units that follow. */
chan wire[2] = [T] of { byte, byte, byte };
bool ended[2];          /* The byte stream that the side writes has ended. */
bool gone[2];           /* It has given its transport up. */

/* The writer of side e. */
byte next[2];           /* The next frame; the end behind the last. */
byte position[2], head[2];
byte out_kind[2], out_number[2], out_rest[2];   /* The frame that the transport takes just now. */

/* The reader of side e. */
byte kept[2], kept_units[2];    /* Frames that have come and were not read. */
byte given[2], told[2];
byte taken[2];                  /* Frames that its user has read. */
bool in_part[2];                /* A frame has come in part. */
bool read_end[2], peer_closed[2], peer_lost[2];

bool closing[2], closed[2];
#ifdef DEATH
bool dies;
#endif

/* Ghosts: frames that the side has finished, and those that the transport got whole. */
byte finished[2], sent[2];

#define writes(e) (!closing[e] && !closed[e] && !peer_closed[e] && !peer_lost[e])

inline begin_frame(e, k, n, r) {
    out_kind[e] = k;
    out_number[e] = n;
    out_rest[e] = r
}

/* [stream.credit_kept] */
#ifdef MUT_NO_CREDIT
#define has_credit(e) true
#else
#define has_credit(e) (position[e] + units(next[e]) - head[e] <= WINDOW)
#endif

/* [stream.credit_told] */
#ifdef MUT_TOLD_AT_END
#define owes(e) (given[e] - told[e] == WINDOW)
#else
#define owes(e) (given[e] - told[e] > WINDOW - LARGEST)
#endif

/* [stream.unhindered] */
#ifdef MUT_CREDIT_BETWEEN
#define may_tell(e) (next[e] == 0 || next[e] >= COUNT(e))
#elif defined(MUT_HALF_CLOSE)
#define may_tell(e) (next[e] <= COUNT(e))
#elif defined(MUT_CREDIT_WAITS)
#define may_tell(e) (next[e] >= COUNT(e) || has_credit(e))
#else
#define may_tell(e) true
#endif

/* [stream.takes_in] */
#ifdef MUT_WRITES_FIRST
#define may_take(e) (out_kind[e] == 0)
#elif defined(MUT_READS_IN_ORDER)
#define may_take(e) (kept[e] == 0)
#else
#define may_take(e) true
#endif

inline data_came(e, n) {
    assert(n == taken[e] + kept[e]);                    /* In order, none lost, none twice. */
    kept[e]++;
    kept_units[e] = kept_units[e] + units(n);
    assert(kept_units[e] <= WINDOW);
#ifdef MUT_GIVEN_EARLY
    given[e] = given[e] + units(n);
#endif
}

/* One unit arrives. [stream.whole] */
inline take_in(e) {
    d_step {
        wire[1 - e]?kind, number, rest;
        if
        :: closing[e] || closed[e] || peer_closed[e]    /* [stream.linger], [stream.behind] */
        :: else ->
            in_part[e] = rest > 0;
            if
            :: rest > 0
            :: rest == 0 && kind == DATA -> data_came(e, number)
            :: rest == 0 && kind == END -> read_end[e] = true
            :: rest == 0 && kind == CREDIT ->
                assert(position[e] - number <= position[e] - head[e]);
                head[e] = number
            :: rest == 0 && kind == CLOSE -> peer_closed[e] = true
            fi
        fi;
        kind = 0; number = 0; rest = 0
    }
}

/* A unit goes out. Who has given the transport up answers one by a reset, which takes away what
 * the other side has not taken in. */
inline push(e) {
    if
#if defined(DEATH) || defined(MUT_NO_LINGER)
    :: gone[1 - e] ->
        begin_frame(e, 0, 0, 0);
        do
        :: nempty(wire[1 - e]) -> wire[1 - e]?_, _, _
        :: empty(wire[1 - e]) -> break
        od
#endif
    :: else ->
        wire[e]!out_kind[e], out_number[e], out_rest[e];
        if
        :: out_rest[e] > 0 -> out_rest[e]--
        :: else ->
            if
            :: out_kind[e] == DATA -> sent[e]++
#ifndef DEATH
            :: out_kind[e] == CLOSE -> closed[e] = true; ended[e] = true
#endif
            :: else
            fi;
            begin_frame(e, 0, 0, 0)
        fi
    fi
}
#if defined(DEATH) || defined(MUT_NO_LINGER)
#define can_push(e) (nfull(wire[e]) || gone[1 - e])
#else
#define can_push(e) nfull(wire[e])
#endif

/* [stream.linger] */
#ifdef MUT_NO_LINGER
#define has_lingered(e) closed[e]
#else
#define has_lingered(e) (closed[e] && ended[1 - e] && empty(wire[1 - e]))
#endif

inline give_up_transport(e) {
    d_step {
        assert(empty(wire[1 - e]) || empty(wire[e]));   /* No reset takes anything away. */
        ended[e] = true;
        gone[e] = true
    }
}

#ifdef MUT_CLOSED_AT_ONCE
#define is_drained(e) true
#else
#define is_drained(e) (kept[e] == 0)
#endif

#ifdef MUT_LOSS_UNSEEN
#define sees_loss(e) (ended[1 - e] && empty(wire[1 - e]) && writes(e) && next[e] > COUNT(e))
#else
#define sees_loss(e) (ended[1 - e] && empty(wire[1 - e]) && writes(e))
#endif

#ifdef MUT_CLOSE_CUTS
#define may_close_now(e) (out_kind[e] != CLOSE)
#else
#define may_close_now(e) (out_kind[e] == 0)
#endif

#ifdef MUT_NO_HANG_UP
#define hangs_up(e) false
#define has_hung_up(e) true
#else
#define hangs_up(e) (peer_closed[e] && !ended[e])
#define has_hung_up(e) ended[e]
#endif

/* The byte stream of e ends, whatever stood half in it. */
inline end_stream(e) {
    begin_frame(e, 0, 0, 0);
    ended[e] = true
}

proctype side(byte e) {
    byte kind, number, rest;
    {
        do
        :: nempty(wire[1 - e]) && may_take(e) && !gone[e] -> take_in(e)
        :: out_kind[e] != 0 && can_push(e) -> d_step { push(e) }
        /* The writer. [stream.frames] */
        :: writes(e) && out_kind[e] == 0 && next[e] < COUNT(e) && has_credit(e) ->
            d_step {
                position[e] = position[e] + units(next[e]);
                begin_frame(e, DATA, next[e], units(next[e]) - 1);
                next[e]++;
                finished[e]++
            }
        :: writes(e) && out_kind[e] == 0 && next[e] == COUNT(e) ->
            d_step { begin_frame(e, END, 0, 0); next[e]++ }
        :: writes(e) && out_kind[e] == 0 && owes(e) && may_tell(e) ->
            d_step {
                begin_frame(e, CREDIT, given[e], 0);
                told[e] = given[e]
            }
        /* The reader's user. [stream.given_back] */
        :: kept[e] > 0 && !closing[e] && !must_write(e) ->
            d_step {
#ifndef MUT_GIVEN_EARLY
                given[e] = given[e] + units(taken[e]);
#endif
                kept_units[e] = kept_units[e] - units(taken[e]);
                kept[e]--;
                taken[e]++
            }
#ifndef DEATH
        /* The user closes: when it is done, or, where it may, whenever it likes. */
#ifdef MAY_CLOSE
        :: writes(e) -> closing[e] = true
#else
        :: writes(e) && next[e] > COUNT(e) && read_end[e] && kept[e] == 0 -> closing[e] = true
#endif
        :: closing[e] && !closed[e] && may_close_now(e) -> d_step { begin_frame(e, CLOSE, 0, 0) }
        :: has_lingered(e) -> give_up_transport(e); break
        /* [stream.hang_up], [stream.closed] */
        :: hangs_up(e) -> d_step { end_stream(e); gone[e] = true }
        :: peer_closed[e] && has_hung_up(e) && is_drained(e) ->
            assert(taken[e] == finished[1 - e]);
            break
#else
        /* [stream.lost] */
        :: sees_loss(e) ->
            d_step {
                peer_lost[e] = true;
                end_stream(e);
#ifdef MUT_PART_COUNTS
                kept[e] = kept[e] + in_part[e];
#endif
                in_part[e] = false
            }
        :: peer_lost[e] && is_drained(e) ->
            assert(taken[e] <= sent[1 - e]);
            break
#endif
        od
    } unless {
#ifdef DEATH
        e == 1 && dies -> d_step { end_stream(e); gone[e] = true }
#else
        false
#endif
    }
}

init {
    atomic { run side(0); run side(1) };
#ifdef DEATH
    dies = true;
#endif
    _nr_pr == 1
}
