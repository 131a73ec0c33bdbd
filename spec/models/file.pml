/*
 * Segments in files: who creates, opens and replaces the file at one path, and the locks that keep
 * them apart ([segment.file_open] and those behind it).
 *
 * Two creators and an opener come at any time, to a path where there is nothing, or a file that
 * others have left over, or one in which one of its old users lives; to the last, one creator. The
 * segment is a hub with two clients: endpoint 0 has both others as peers. Each process that is in a
 * file looks once whether a peer lives, and may close. One process dies, at any step; the kernel
 * then releases its locks.
 *
 * With VACATES the segment is a port, and somebody lives in the file. Where the other side is gone,
 * whoever lives makes its endpoint vacant, and from then on waits for the next owner.
 *
 * A file is a number, and so is its owner; to look at a lock, or to take it, is one step. What a
 * creator does to a file that has no name yet nobody sees: it is done when the model begins.
 */
#define FILES 3
#define ENDS 3
#define NONE FILES
#define at(f, e) (ENDS * (f) + (e))

#define VACANT 0
#define ATTACHED 1
#define CLOSED 2
#define FAILED 3
#define low(word) ((word) % 4)
#define next_generation(word) (4 * ((word) / 4 + 1))

/* Processes. The first two have a file each, of their own number, to give the name to. */
#define CREATOR 0
#define OTHER 1
#define OPENER 2
#define OLD 3
#define PROCESSES 4
#define OLD_FILE 2

/* The file that has the name; who has the locks, 0 for nobody. */
byte path = NONE;
byte header[FILES];
byte record[FILES * ENDS];
byte state[FILES * ENDS];
bool dead[PROCESSES];
#define me (p + 1)

/* Ghosts: who has a lock, until he means to release it; who has attached and not closed. */
byte user[FILES * ENDS];
byte owner[FILES * ENDS];

/* The file that a process is in. */
byte in[PROCESSES] = NONE;

/* What an endpoint of a file is, as everybody can see. */
#define is_locked(f, e) (record[at(f, e)] != 0)
#define is_here(f, e) (is_locked(f, e) && low(state[at(f, e)]) <= ATTACHED)
#define is_expected(f, e) (!is_locked(f, e) && low(state[at(f, e)]) == VACANT)
#define is_gone(f, e) (!is_here(f, e) && !is_expected(f, e))

/* Whether some endpoint and a peer of it are what is asked: in a port, and in a hub. */
#ifdef VACATES
#define OPENS 1
#define some(what, f) (what(f, 0, 1) || what(f, 1, 0))
#else
#define OPENS 2
#define some(what, f) (what(f, 0, 1) || what(f, 1, 0) || what(f, 0, 2) || what(f, 2, 0))
#endif

/*
 * [segment.file_left] Whether the file is a left-over, for a creator who wants endpoint e: the one
 * place where that is decided. It is one step, though a creator needs many for it: while he holds
 * the lock on the header, endpoints only get from here to gone.
 */
#define can_meet(f, e, peer) (is_here(f, e) && !is_gone(f, peer))
#if defined(MUT_LEFT_BLIND)
#define is_left(f, e) true
#elif defined(MUT_LEFT_UNLOCKED)
#define is_left(f, e) (!is_locked(f, 0) && !is_locked(f, 1) && !is_locked(f, 2))
#elif defined(MUT_LEFT_OWN)
#define is_left(f, e) (!is_here(f, e))
#else
#define is_left(f, e) (!some(can_meet, f) && !is_here(f, e))
#endif

/* Ghost: whether somebody who uses a file lives to meet a peer there; else it may lose its name. */
#define uses(f, e) (user[at(f, e)] != 0 && low(state[at(f, e)]) <= ATTACHED)
#define may_come(f, e) (uses(f, e) || low(state[at(f, e)]) == VACANT)
#define waits(f, e, peer) (uses(f, e) && may_come(f, peer))
#define may_lose_name(f) (!some(waits, f))

/* Nobody removes a live file. */
inline give_name(f) {
    d_step {
        if
        :: path != NONE && path != (f) -> assert(may_lose_name(path))
        :: else
        fi;
        path = (f)
    }
}

inline lock_header(f) {
    d_step { header[f] == 0 -> header[f] = me }
}

inline unlock_header(f) {
    header[f] = 0
}

inline lock_record(f, e) {
    d_step {
        if
        :: record[at(f, e)] == 0 ->
            record[at(f, e)] = me;
            user[at(f, e)] = me;
            got = true;
            /* Who gets in is in the file that has the name. */
            assert(path == f)
        :: else
        fi
    }
}

inline unlock_record(f, e) {
    d_step {
#ifndef MUT_LOCK_KEPT
        record[at(f, e)] = 0;
#endif
        user[at(f, e)] = 0
    }
}

/* [segment.state_change] From the exact word that was loaded. */
inline take_endpoint(f, e) {
    d_step {
        if
        :: state[at(f, e)] == seen ->
            state[at(f, e)] = seen + ATTACHED;
            owner[at(f, e)] = me;
            took = true
        :: else
        fi
    }
}

/* Takes endpoint e of file f, whose header is locked. */
inline join(f, e) {
    seen = state[at(f, e)];
    if
    :: low(seen) != VACANT -> unlock_header(f)          /* Refused: segment.endpoint. */
    :: else ->
#if defined(MUT_RECORD_LATE)
        take_endpoint(f, e);
        lock_record(f, e);
        unlock_header(f);
#elif defined(MUT_UNLOCKS_EARLY)
        unlock_header(f);
        lock_record(f, e);
        if
        :: got -> take_endpoint(f, e)
        :: else
        fi;
#elif defined(MUT_HEADER_KEPT)
        lock_record(f, e);
        if
        :: got -> take_endpoint(f, e)
        :: else -> unlock_header(f)
        fi;
#else
        lock_record(f, e);
        unlock_header(f);
        if
        :: got -> take_endpoint(f, e)
        :: else
        fi;
#endif
        if
        :: got && took -> in[p] = f
        :: got && !took -> unlock_record(f, e)          /* Refused, as without the lock. */
        :: else
        fi
    fi;
    d_step { seen = 0; got = false; took = false }
}

/* [segment.file_dead] The state first: the lock was there before it. */
inline look_whether_alive(f, e) {
#ifdef MUT_LOCK_FIRST
    got = is_locked(f, e);
    seen = state[at(f, e)];
    if
    :: low(seen) == ATTACHED && !got ->
#else
    seen = state[at(f, e)];
    if
    :: low(seen) == ATTACHED && !is_locked(f, e) ->
#endif
        d_step {
            if
            :: state[at(f, e)] == seen ->
                assert(owner[at(f, e)] == 0);           /* It is dead indeed. */
                state[at(f, e)] = seen - ATTACHED + FAILED
            :: else
            fi
        }
    :: else
    fi;
    seen = 0
}

/* What a process does that is in a file: it looks at a peer, and stays, or closes. */
#define peer_of(e) (e == 0 -> 1 : 0)

inline use(f, e) {
    look_whether_alive(f, peer_of(e));
#ifdef VACATES
    vacate(f, peer_of(e));
#endif
    if
    :: true                                             /* Stays, for longer than the model. */
    :: d_step { state[at(f, e)] = state[at(f, e)] - ATTACHED + CLOSED; owner[at(f, e)] = 0 };
        unlock_record(f, e);
        in[p] = NONE
    fi
}

#ifdef VACATES
inline make_vacant(f, e) {
    d_step {
        state[at(f, e)] = VACANT + next_generation(state[at(f, e)]);
        assert(path == f)                               /* Somebody may come. */
    }
}

/* An endpoint comes back: its peer makes it vacant when nobody has its record, under the lock on
 * the header, and only in the file that has the name. */
inline vacate(f, e) {
    if
    :: !is_locked(f, e) && low(state[at(f, e)]) >= CLOSED ->
#ifdef MUT_VACATES_UNLOCKED
        if
        :: path == f -> make_vacant(f, e)
        :: else
        fi
#else
        lock_header(f);
        if
#ifdef MUT_VACATES_UNSEEN
        :: true -> make_vacant(f, e)
#else
        :: path == f -> make_vacant(f, e)
        :: else
#endif
        fi;
        unlock_header(f)
#endif
    :: else
    fi
}
#endif

proctype creator(byte p; byte e) {
    byte f, seen;
    bool got, took;
    {
        do
        :: d_step {
                path == NONE ->
                path = p;                               /* By link, which fails if there is one. */
                in[p] = p
            };
#ifdef MUT_NAMED_EARLY
            lock_record(p, e);
            take_endpoint(p, e);
#endif
            break
        :: d_step { path != NONE -> f = path };         /* Opens it. */
            lock_header(f);
            if
#ifdef MUT_REMOVES_UNSEEN
            :: false -> unlock_header(f)
#else
            :: path != f -> unlock_header(f)
#endif
            :: else ->
                if
                :: is_left(f, e) ->
#ifdef MUT_RENAMES_OVER
                    unlock_header(f);
                    give_name(p);
                    in[p] = p;
                    break
#else
                    give_name(NONE);
                    unlock_header(f)
#endif
                :: d_step {
                        !is_left(f, e) ->
                        /* Nor is one kept for nobody. */
                        assert(!may_lose_name(f) || uses(f, e))
                    };
                    join(f, e);
                    break
                fi
            fi
        od;
        f = 0;
        if
        :: in[p] != NONE -> use(in[p], e)
        :: else
        fi
    } unless { dead[p] }
}

proctype opener(byte p; byte e) {
    byte f, seen;
    bool got, took;
    {
        do
        :: path == NONE -> break                        /* Refused: there is none. */
        :: d_step { path != NONE -> f = path };
#ifdef MUT_CHECKS_FIRST
            if
            :: path != f
            :: else -> lock_header(f); join(f, e); break
            fi
#else
#ifndef MUT_NO_HEADER_LOCK
            lock_header(f);
#endif
            if
#ifdef MUT_NO_CHECK
            :: false -> unlock_header(f)
#else
            :: path != f -> unlock_header(f)
#endif
            :: else -> join(f, e); break
            fi
#endif
        od;
        f = 0;
        if
        :: in[p] != NONE -> use(in[p], e)
        :: else
        fi
    } unless { dead[p] }
}

proctype old_user(byte p; byte e) {
    byte seen;
#ifdef MUT_LOCK_FIRST
    bool got;
#endif
    {
        use(OLD_FILE, e)
    } unless { dead[p] }
}

/* What a creator has done to its file before anybody sees it. */
inline draft(p, e) {
#ifndef MUT_NAMED_EARLY
    state[at(p, e)] = ATTACHED;
    record[at(p, e)] = me;
    user[at(p, e)] = me;
    owner[at(p, e)] = me
#else
    skip
#endif
}

/* [segment.file_lock] Whatever process it is, and wherever it stands. */
proctype death(byte p) {
    byte i;
    d_step {
        if
        :: p < PROCESSES ->
            dead[p] = true;
            in[p] = NONE;
            do
            :: i < FILES * ENDS ->
                if
                :: record[i] == me -> record[i] = 0
                :: else
                fi;
                if
                :: user[i] == me -> user[i] = 0
                :: else
                fi;
                if
                :: owner[i] == me -> owner[i] = 0
                :: else
                fi;
                if
                :: i < FILES && header[i] == me -> header[i] = 0
                :: else
                fi;
                i++
            :: else -> break
            od
        :: else
        fi
    }
}

/* What stands at the path when they come. */
#define NOTHING 0
#define LEFT_OVER 1                                     /* A server and a client have died. */
#define SERVER_WAITS 2                                  /* One lives: nobody else was there, */
#define SERVER_LEFT 3                                   /* or its peers were and have died. */
#define CLIENT_WAITS 4
#define CLIENT_LEFT 5

init {
    byte i, old, other, victim = PROCESSES;
#ifdef VACATES
    select(old : SERVER_WAITS .. CLIENT_LEFT);
#else
    select(old : NOTHING .. CLIENT_LEFT);
#endif
    select(other : 0 .. 1);                             /* The endpoint of the second creator. */
#ifndef NO_DEATH
    select(victim : 0 .. PROCESSES);
#endif
    d_step {
        if
        :: old == LEFT_OVER -> other = 1
        :: else
        fi;
        if
        :: victim == (old <= LEFT_OVER -> OLD : (other == 0 -> OTHER : CREATOR)) ->
            victim = PROCESSES                          /* That one does not come. */
        :: else
        fi;
        if
        :: old != NOTHING ->
            path = OLD_FILE;
            i = (old == SERVER_WAITS || old == CLIENT_WAITS -> VACANT : ATTACHED);
            state[at(OLD_FILE, 0)] = i;
            state[at(OLD_FILE, 1)] = i;
            state[at(OLD_FILE, 2)] = (old == SERVER_LEFT -> ATTACHED : VACANT)
        :: else
        fi;
        if
        :: old > LEFT_OVER ->
            i = old / CLIENT_WAITS;
            state[at(OLD_FILE, i)] = ATTACHED;
            record[at(OLD_FILE, i)] = OLD + 1;
            user[at(OLD_FILE, i)] = OLD + 1;
            owner[at(OLD_FILE, i)] = OLD + 1;
            in[OLD] = OLD_FILE
        :: else
        fi;
        i = 0
    };
    atomic {
        if
        :: old <= LEFT_OVER || other == 0 -> draft(CREATOR, 0); run creator(CREATOR, 0)
        :: else
        fi;
        if
        :: old <= LEFT_OVER || other == 1 -> draft(OTHER, other); run creator(OTHER, other)
        :: else
        fi;
        if
        :: old > LEFT_OVER -> run old_user(OLD, old / CLIENT_WAITS)
        :: else
        fi;
        run opener(OPENER, OPENS);
        run death(victim)
    };
    _nr_pr == 1;
    do
    :: i < PROCESSES ->
        assert(in[i] == NONE || in[i] == path || may_lose_name(in[i]));
        i++
    :: else -> break
    od
}
