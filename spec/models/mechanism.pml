/*
 * A hub whose clients ring different mechanisms: some can end its sleep, others only move its bell.
 *
 * The first client is there from the start and can ring the hub. The others attach at any time, and
 * turn out able to ring it or not. One client, chosen at the start, writes a message. The hub waits
 * for all of them. It sleeps only if every attached client can ring it, and otherwise polls; where
 * one is vacant it sleeps in slices. What a slice is for, an assertion shows: at its end there is a
 * client that has attached behind the load of the bell. One that came before is seen by the load of
 * its state.
 */
#define ENDS 1
#ifndef CLIENTS
#define CLIENTS 3
#endif
#define RINGS CLIENTS
#define CAP 2
#define SPURIOUS 0
#define HUB 0
#define OWNER(k) HUB

#include "wake.inc"

#define VACANT 0
#define ATTACHED 1

byte state[CLIENTS];
bool able[CLIENTS], wakes[CLIENTS];

/* Ghosts: who will write, and the states when the bell was loaded. */
byte speaker;
byte state_before[CLIENTS];

/* A ring as far as the client's kind of notify reaches. */
inline ring_if_able(c) {
    moved[HUB] = ALL;
    if
    :: able[c] -> waiters[HUB] = 0
    :: else
    fi
}

proctype client(byte c) {
    byte w, got, i;
    if
    :: c > 0 ->
        state[c] = ATTACHED;
        wakes[c] = able[c];
        ring_if_able(c)                                 /* [segment.state_ring] */
    :: else
    fi;
    if
    :: c != speaker
    :: else ->
        tail[c] = plus(START, 1);
        w = wants[DATA(c)];
        if
        :: w != 0 ->
            d_step { w = 0; got = wants[DATA(c)]; wants[DATA(c)] = 0; armed[DATA(c)] = false };
            if
            :: got != 0 -> got = 0; ring_if_able(c)
            :: else
            fi
        :: else
        fi
    fi
}

#if CLIENTS == 2
#define any(what) (what(0) || what(1))
#else
#define any(what) (what(0) || what(1) || what(2))
#endif
#define is_there(c) (tail[c] != START)
#define is_deaf(c) (state[c] == ATTACHED && !wakes[c])
#define is_new(c) (state_before[c] == VACANT && state[c] == ATTACHED)

/* [wait.mechanism] [wait.vacant] What the states and the `wakes` of the clients say. */
inline look_at_mechanisms() {
    do
    :: c < CLIENTS ->
        if
        :: state[c] == VACANT -> vacant = true
        :: else ->
            if
            :: wakes[c] -> able_count++
#ifdef MUT_FIRST_CLIENT_ONLY
            :: !wakes[c] -> deaf = (c == 0)
#else
            :: else -> deaf = true
#endif
            fi
        fi;
        c++
    :: else -> break
    od;
#ifdef MUT_ANY_CAN_RING
    deaf = deaf && able_count == 0;
#endif
    c = 0;
    able_count = 0
}

proctype hub() {
    byte c, able_count;
    bool vacant, deaf, found;
#ifdef MUT_DECIDES_ONCE
    look_at_mechanisms();
#endif
    do
    :: any(is_there) -> break
    :: else ->
#ifdef MUT_MECHANISMS_FIRST
        look_at_mechanisms();
#endif
        load_bell(HUB);
        d_step {
            do
            :: c < CLIENTS ->
                arm(DATA(c), plus(START, 1));
                state_before[c] = state[c];
                c++
            :: else -> break
            od;
            c = 0
        };
        found = any(is_there);
#if !defined(MUT_DECIDES_ONCE) && !defined(MUT_MECHANISMS_FIRST)
        look_at_mechanisms();
#endif
        if
        :: found
        :: !found && deaf -> any(is_there) || !any(is_deaf)     /* [wait.poll] */
        :: !found && !deaf && !vacant -> wait(HUB)
#ifdef MUT_VACANT_FOREVER
        :: !found && !deaf && vacant -> wait(HUB)
#else
        :: !found && !deaf && vacant ->
            if
            :: moved[HUB] & ME
            :: d_step { !(moved[HUB] & ME) -> waiters[HUB] = ME };
                if
                :: waiters[HUB] == 0
                /* [wait.slice] */
                :: d_step { waiters[HUB] != 0 && timeout -> assert(any(is_new)); waiters[HUB] = 0 }
                fi
            fi
#endif
        fi;
        d_step {
            do
            :: c < CLIENTS ->
                disarm(DATA(c));
                state_before[c] = 0;
                c++
            :: else -> break
            od;
            c = 0; found = false;
#ifndef MUT_DECIDES_ONCE
            vacant = false; deaf = false
#endif
        }
    od
}

init {
    byte i;
    begin();
    select(i : 0 .. CLIENTS - 1);
    speaker = i;
    able[0] = true;
    select(i : 0 .. 1);
    able[1] = i;
    select(i : 0 .. 1);
    able[CLIENTS - 1] = i;
    i = 0;
    atomic {
        state[0] = ATTACHED;
        wakes[0] = true;
        run hub();
        do
        :: i < CLIENTS -> run client(i); i++
        :: else -> break
        od
    };
    _nr_pr == 1;
    i = 0;
    do
    :: i < CLIENTS -> assert(wants[DATA(i)] == 0); i++
    :: else -> break
    od
}
