/*
 * Two endpoints of a port that call one another and wait, each on one stack: while a side waits for
 * its answer it serves the calls that arrive, and a method may call back.
 *
 * A message has two frames and a ring has room for one, so that every message waits for room in the
 * middle; a cancel is one frame. The inbox holds one call. A side may give its call up while it
 * waits, at any moment, and one side may die at any step. How a side sleeps is shown elsewhere:
 * here it goes on as soon as there is something to do.
 *
 * Each call has a number of its own that the protocol does not see. It goes with the frames, so
 * that an answer, or a cancel, for a wrong call shows.
 */
#ifndef N
#define N 2             /* Calls that a side makes at most; one that may die makes one. */
#endif
#ifdef DEATH
#define MAY_MAKE(e) (e == 0 -> N : 1)
#else
#define MAY_MAKE(e) N
#endif
#ifndef DEPTH
#define DEPTH 1         /* [call.depth] */
#endif
#define IDS (DEPTH + 1) /* [call.under_way] */

/* What a frame is of; RETURN stands for a throw as well. */
#define CALL 1
#define RETURN 2
#define CANCEL 3

/* The frame in the ring that a side writes: its kind, 0 for none, the id and the number of the
 * call, and whether it is the last of its message. */
byte ring_kind[2], ring_id[2], ring_number[2];
bool ring_last[2];
#define is_free(r) (ring_kind[r] == 0)

inline send(r, k, d, n, l) {
    d_step {
        ring_kind[r] = k;
        ring_id[r] = d;
        ring_number[r] = n;
        ring_last[r] = l
    }
}

/* An id of a side's own calls: the call's number, and what is known of it. */
#define FREE 0
#define WAITS 1
#define ANSWERED 2
#define GIVEN_UP 3
byte own[2 * (IDS + 1)], own_state[2 * (IDS + 1)];
/* An id of the peer's: the number of the call that is being served, 0 for none; and whether its
 * method was told to stop. */
byte served[2 * (IDS + 1)];
bool told[2 * (IDS + 1)];
bool refused[2 * (IDS + 1)];    /* It was not begun, and is to be answered. */
#define at(e, id) ((e) * (IDS + 1) + (id))

/* The stack: a wait for the answer to an own call, or a method that serves a call of the peer. */
#define SERVES 10
#define TOP (2 * DEPTH + 2)
byte stack[2 * TOP], height[2];
#define top(e) (height[e] == 0 -> 0 : stack[(e) * TOP + height[e] - 1])
#define waits(e) (top(e) != 0 && top(e) < SERVES)

byte inbox[2];          /* The id of a call that was not begun yet. */
byte owed[2];           /* The id of a cancel that found no room yet. */
byte part_kind[2], part_id[2];  /* A message of which the first frame has come. */
byte made[2];
byte gave_up[2];        /* The number of the call that was given up, 0 for none. */
bool dead, rests[2];

/* Ghosts, by the number of the call. */
byte ends[2 * (N + 1)];
bool published[2 * (N + 1)];
#define ghost(e, number) ((e) * (N + 1) + (number))

#define lost(e) (dead && e == 0 && is_free(1))

inline push(e, what) {
    assert(height[e] < TOP);
    stack[(e) * TOP + height[e]] = what;
    height[e]++
}

inline pop(e) {
    height[e]--;
    stack[(e) * TOP + height[e]] = 0
}

/* [call.once] */
inline finish(e, id) {
    ends[ghost(e, own[at(e, id)])]++;
    assert(ends[ghost(e, own[at(e, id)])] == 1)
}

inline free(e, id) {
    own[at(e, id)] = 0;
    own_state[at(e, id)] = FREE
}

/* An answer has come. [call.match], [call.late] */
inline answered(e, id, number) {
    assert(own_state[at(e, id)] == WAITS || own_state[at(e, id)] == GIVEN_UP);
    assert(own[at(e, id)] == number);                   /* Not the answer to another call. */
    if
    :: own_state[at(e, id)] == WAITS -> own_state[at(e, id)] = ANSWERED
    :: else ->
#ifdef MUT_LATE_ENDS
        finish(e, id);
#endif
        free(e, id);
        if
#ifndef MUT_OWED_AFTER
        :: owed[e] == id -> owed[e] = 0
#endif
        :: else
        fi
    fi
}

/* [call.cancelled], [call.crossed] */
inline cancelled(e, id, number) {
    if
    :: served[at(e, id)] != 0 ->
        assert(served[at(e, id)] == number);            /* No other call is cancelled. */
        told[at(e, id)] = true;
        if
#ifndef MUT_INBOX_KEPT
        :: inbox[e] == id -> inbox[e] = 0; refused[at(e, id)] = true
#endif
        :: else
        fi
#ifdef MUT_CANCEL_KEPT
    :: else -> told[at(e, id)] = true
#else
    :: else
#endif
    fi
}

/* One frame that has come. */
inline take(e) {
    d_step {
        kind = ring_kind[1 - (e)];
        id = ring_id[1 - (e)];
        number = ring_number[1 - (e)];
        last = ring_last[1 - (e)];
        send(1 - (e), 0, 0, 0, false);
        if
        :: kind == CANCEL -> assert(part_kind[e] == 0); cancelled(e, id, number)
        :: kind != CANCEL && !last ->
            assert(part_kind[e] == 0);                  /* [call.whole_first] */
            part_kind[e] = kind;
            part_id[e] = id
        :: kind != CANCEL && last ->
            assert(part_kind[e] == kind && part_id[e] == id);
            part_kind[e] = 0;
            part_id[e] = 0;
            if
            :: kind == CALL ->
                assert(served[at(e, id)] == 0);         /* [call.id] No duplicate comes. */
                assert(inbox[e] == 0);
                assert(!told[at(e, id)]);               /* Nobody has cancelled this call. */
                served[at(e, id)] = number;
                inbox[e] = id
            :: else ->
#ifdef MUT_MATCHES_TOP
                if
                :: waits(e) -> id = top(e)
                :: else
                fi;
#endif
                answered(e, id, number)
            fi
        fi;
        kind = 0; id = 0; number = 0; last = false
    }
}

/* [call.takes_in] What may be taken in while a side waits for room. */
#if defined(MUT_NO_TAKE_IN)
#define may_take(e) false
#elif defined(MUT_ANSWERS_WAIT)
#define may_take(e) (!is_free(1 - (e)) && inbox[e] == 0)
#else
#define may_take(e) (!is_free(1 - (e)) && (inbox[e] == 0 || ring_kind[1 - (e)] != CALL))
#endif

/* [call.cancel_owed] Its id is that of the call which was given up, as long as it is owed. */
inline place_cancel(e) {
    if
    :: owed[e] != 0 && is_free(e) -> send(e, CANCEL, owed[e], gave_up[e], true); owed[e] = 0
    :: else
    fi
}

/* Places one frame, and takes in what comes as long as there is no room. */
inline place(e, what, which, whose_call, is_last) {
    do
    :: is_free(e) -> send(e, what, which, whose_call, is_last); break
    :: !is_free(e) && may_take(e) -> take(e)
    :: !is_free(e) && dead && e == 0 -> break
    od
}

inline write(e, sort, which_one, of_call) {
#ifndef MUT_OWED_AFTER
    if
    :: owed[e] != 0 -> place(e, CANCEL, owed[e], gave_up[e], true); owed[e] = 0
    :: else
    fi;
#endif
    place(e, sort, which_one, of_call, false);
#ifdef MUT_SERVES_HALFWAY
    if
    :: inbox[e] != 0 ->
        place(e, RETURN, inbox[e], served[at(e, inbox[e])], false);
        place(e, RETURN, inbox[e], served[at(e, inbox[e])], true);
        served[at(e, inbox[e])] = 0;
        inbox[e] = 0
    :: else
    fi;
#endif
    place(e, sort, which_one, of_call, true)
#ifdef MUT_OWED_AFTER
    ;
    place_cancel(e)
#endif
}

/* [call.answer] The method that serves a call is done, or the call is refused. */
inline answer(e, the) {
    whose = served[at(e, the)];
#ifdef MUT_CANCELLED_SILENT
    if
    :: told[at(e, the)]
    :: else -> write(e, RETURN, the, whose)
    fi;
#else
    write(e, RETURN, the, whose);
#endif
    served[at(e, the)] = 0;
    d_step {
        told[at(e, the)] = false;
        if
        :: !dead || e == 1 -> published[ghost(1 - e, whose)] = true
        :: else
        fi;
        whose = 0
    }
}

/* Begins the call in the inbox, or refuses it. [call.depth], [call.stops] */
inline begin_call(e) {
    d_step {
        if
#ifndef MUT_NO_DEPTH
        :: depth == DEPTH -> refused[at(e, inbox[e])] = true
        :: else ->
#else
        :: true ->
#endif
            push(e, SERVES + inbox[e]);
            depth++;
            assert(depth <= DEPTH)
        fi;
        inbox[e] = 0
    }
}

/* The user's code, of the program or of a method, makes one call. [call.id], [call.under_way] */
inline make_call(e) {
    d_step {
        the = 1;
        do
        :: own_state[at(e, the)] != FREE -> the++
        :: else -> break
        od;
        made[e]++;
        own[at(e, the)] = made[e];
        own_state[at(e, the)] = WAITS;
        push(e, the)
    };
    write(e, CALL, the, made[e]);
    the = 0
}

/* [call.give_up] */
inline give_up(e) {
    d_step {
        the = top(e);
        gave_up[e] = own[at(e, the)];
        finish(e, the);
        own_state[at(e, the)] = GIVEN_UP;
        owed[e] = the;
#ifdef MUT_FREES_EARLY
        free(e, the);
#endif
        pop(e);
        the = 0
    };
    place_cancel(e)
}

/* [call.lost], [call.told] All that waits ends, and all that is served is told. */
inline lose(e) {
    d_step {
        the = 1;
        do
        :: the <= IDS ->
            if
            :: own_state[at(e, the)] == WAITS ->
                assert(!published[ghost(e, own[at(e, the)])]);
                finish(e, the);
                own_state[at(e, the)] = GIVEN_UP
            :: else
            fi;
#ifndef MUT_NOT_TOLD
            told[at(e, the)] = true;
#endif
            the++
        :: else -> break
        od;
        the = 0;
        gone = true
    }
}

#if DEPTH == 1
#define any(e, of) (of(at(e, 1)) || of(at(e, 2)))
#else
#define any(e, of) (of(at(e, 1)) || of(at(e, 2)) || of(at(e, 3)))
#endif
#define has_free(k) (own_state[k] == FREE)
#define is_refused(k) refused[k]
#define refuses(e) any(e, is_refused)
#define free_id(e) any(e, has_free)
#ifdef MUT_NO_SERVE
#define serves(e) (height[e] == 0)
#else
#define serves(e) true
#endif

#ifdef MUT_LOSS_FIRST
#define sees_loss(e) (dead && e == 0)
#elif defined(MUT_NO_LOSS)
#define sees_loss(e) false
#else
#define sees_loss(e) lost(e)
#endif

proctype side(byte e) {
    byte kind, id, number, the, whose, depth;
    bool last, gone;
    {
        do
        /* The program, or the method on top, has the choice: to call, */
        :: !gone && !waits(e) && made[e] < MAY_MAKE(e) && free_id(e) &&
                (height[e] > 0 || !rests[e]) -> make_call(e)
        /* to be done, */
        :: !gone && height[e] == 0 && !rests[e] -> rests[e] = true
        :: !gone && top(e) > SERVES ->
            the = top(e) - SERVES;
            answer(e, the);
            d_step { pop(e); depth--; the = 0 }
        /* It waits, for an answer or, when it is done, for calls. */
        :: waits(e) && own_state[at(e, top(e))] == ANSWERED ->
            d_step {
                the = top(e);
                finish(e, the);
                free(e, the);
                pop(e);
                the = 0
            }
        :: !gone && waits(e) && own_state[at(e, top(e))] == WAITS && gave_up[e] == 0 -> give_up(e)
        :: (waits(e) || height[e] == 0 && rests[e]) && serves(e) && inbox[e] != 0 && !gone ->
            begin_call(e)
        :: (waits(e) || height[e] == 0 && rests[e]) && refuses(e) && !gone ->
            d_step {
                the = 1;
                do
                :: !refused[at(e, the)] -> the++
                :: else -> break
                od
            };
            answer(e, the);
            d_step { refused[at(e, the)] = false; the = 0 }
        :: !gone && (waits(e) || height[e] == 0 && rests[e]) && inbox[e] == 0 &&
                !is_free(1 - e) -> take(e)
        :: !gone && (waits(e) || height[e] == 0 && rests[e]) && owed[e] != 0 && is_free(e) ->
            place_cancel(e)
#ifdef DEATH
        /* The port is lost: what stands on the stack comes to its end. */
        :: !gone && sees_loss(e) -> lose(e)
        :: gone && height[e] != 0 && !(waits(e) && own_state[at(e, top(e))] == ANSWERED) ->
            d_step {
                if
                :: waits(e)
                :: else -> assert(told[at(e, top(e) - SERVES)])
                fi;
                pop(e)
            }
        :: gone && height[e] == 0 -> break
#endif
        /* Both are done, and nothing is on its way. */
        :: rests[0] && rests[1] && height[0] == 0 && height[1] == 0 && inbox[0] == 0 &&
                inbox[1] == 0 && !refuses(0) && !refuses(1) && is_free(0) && is_free(1) &&
                owed[0] == 0 && owed[1] == 0 -> break
        od
    } unless {
        /* Nobody asks any more what the dead one knew; a state is the same without it. */
        d_step {
            dead && e == 1 ->
            the = 1;
            do
            :: the <= IDS ->
                own[at(e, the)] = 0; own_state[at(e, the)] = 0; served[at(e, the)] = 0;
                told[at(e, the)] = false; refused[at(e, the)] = false;
                the++
            :: else -> break
            od;
            the = 0;
            do
            :: the < TOP -> stack[e * TOP + the] = 0; the++
            :: else -> break
            od;
            the = 1;
            do
            :: the <= N -> ends[ghost(e, the)] = 0; published[ghost(e, the)] = false; the++
            :: else -> break
            od;
            the = 0; whose = 0; depth = 0; height[e] = 0; inbox[e] = 0; owed[e] = 0;
            part_kind[e] = 0; part_id[e] = 0; gave_up[e] = 0; made[e] = 0; rests[e] = false
        }
    }
}

init {
    byte e, i;
    atomic { run side(0); run side(1) };
#ifdef DEATH
    dead = true;
#endif
    _nr_pr == 1;
    for (e : 0 .. 1) {
        for (i : 1 .. N) {
            /* Each call that was made has ended, but for those of the dead. */
            assert(ends[ghost(e, i)] == (i <= made[e] -> 1 : 0) || dead && e == 1)
        }
        for (i : 1 .. IDS) {
            assert(dead || own_state[at(e, i)] == FREE && served[at(e, i)] == 0)
        }
    }
}
