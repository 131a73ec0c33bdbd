/*
 * [wait.store_order] The Dekker pair on memory that is not sequentially consistent, and why the
 * protocol asks for stores that are.
 *
 * Each thread stores into a buffer of its own and loads through it; entries reach memory later, at
 * any time. Without STORES_REORDER a buffer is emptied in order, as on x86 (TSO); with it, entries
 * for different words overtake each other, as on ARM (only stores are reordered, loads are not).
 * A sequentially consistent store, and every read-modify-write, waits until the buffer is empty and
 * goes to memory at once. Payload bytes are plain stores in every variant.
 */
#define DEPTH 3
#define N 2
#define WRITER 0
#define READER 1

#define BELL 0
#define WANTS 1
#define TAIL 2
#define PAYLOAD 3                                       /* Two words for each message. */
#define WORDS (PAYLOAD + 2 * N)

byte memory[WORDS];
byte stored_word[2 * DEPTH];
byte stored_value[2 * DEPTH];
byte stored[2];
bool asleep;
byte received;

#define entry(p, n) (DEPTH * (p) + (n))

/* The newest entry of the own buffer, or memory. */
inline load(p, word, value) {
    d_step {
        value = memory[word];
        i = 0;
        do
        :: i < stored[p] ->
            if
            :: stored_word[entry(p, i)] == (word) -> value = stored_value[entry(p, i)]
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline store_plain(p, word, value) {
    d_step {
        stored[p] < DEPTH ->
        stored_word[entry(p, stored[p])] = (word);
        stored_value[entry(p, stored[p])] = (value);
        stored[p]++
    }
}

/* An empty buffer first: so that no later load of this thread comes before it. */
inline store_seq_cst(p, word, value) {
    d_step { stored[p] == 0 -> memory[word] = (value) }
}

inline exchange(p, word, value, old) {
    d_step { stored[p] == 0 -> old = memory[word]; memory[word] = (value) }
}

inline add_one(p, word) {
    d_step { stored[p] == 0 -> memory[word] = memory[word] + 1 }
}

/* Empties one thread's buffer, whenever it likes. */
proctype memory_system(byte p) {
    byte n, i;
end:
    do
    :: atomic {
            stored[p] > 0 ->
#ifdef STORES_REORDER
            /* Any entry that no older entry for the same word stands before. */
            select(n : 0 .. stored[p] - 1);
            i = 0;
            do
            :: i < n && stored_word[entry(p, i)] != stored_word[entry(p, n)] -> i++
            :: i < n && stored_word[entry(p, i)] == stored_word[entry(p, n)] -> n = i
            :: i == n -> break
            od;
#endif
            memory[stored_word[entry(p, n)]] = stored_value[entry(p, n)];
            stored[p]--;
            i = n;
            do
            :: i < stored[p] ->
                stored_word[entry(p, i)] = stored_word[entry(p, i + 1)];
                stored_value[entry(p, i)] = stored_value[entry(p, i + 1)];
                i++
            :: else -> break
            od;
            stored_word[entry(p, stored[p])] = 0;
            stored_value[entry(p, stored[p])] = 0;
            i = 0; n = 0
        }
    od
}

proctype writer() {
    byte sent, w, i;
    do
    :: sent < N ->
        sent++;
        store_plain(WRITER, PAYLOAD + 2 * sent - 2, 1);
        store_plain(WRITER, PAYLOAD + 2 * sent - 1, 1);
#if defined(MUT_TAIL_PLAIN)
        store_plain(WRITER, TAIL, sent);
#elif defined(MUT_TAIL_RELEASE)
        /* Behind everything before it, but the thread goes on before it arrives. */
        stored[WRITER] == 0;
        store_plain(WRITER, TAIL, sent);
#else
        store_seq_cst(WRITER, TAIL, sent);
#endif
        load(WRITER, WANTS, w);
        if
        :: w != 0 ->
            exchange(WRITER, WANTS, 0, w);
            if
            :: w != 0 -> add_one(WRITER, BELL); asleep = false
            :: else
            fi
        :: else
        fi;
        w = 0
    :: else -> break
    od
}

proctype reader() {
    byte b, t, value, i;
    do
    :: received < N ->
        load(READER, TAIL, t);
        if
        :: t > received ->
            do
            :: received < t ->
                /* [ring.publish] The cursor never overtakes payload. */
                load(READER, PAYLOAD + 2 * received, value);
                assert(value == 1);
                load(READER, PAYLOAD + 2 * received + 1, value);
                assert(value == 1);
                received++
            :: else -> break
            od;
            value = 0; t = 0
        :: else ->
            load(READER, BELL, b);
#if defined(MUT_WANTS_PLAIN)
            store_plain(READER, WANTS, 1);
#else
            store_seq_cst(READER, WANTS, 1);
#endif
            load(READER, TAIL, t);
            if
            :: t > received
            :: t == received ->
                /* The kernel compares in memory, in one step with falling asleep. */
                if
                :: memory[BELL] != b
                :: d_step { memory[BELL] == b -> asleep = true };
                    !asleep
                fi
            fi;
            b = 0; t = 0;
#ifdef MUT_DISARM_PLAIN
            store_plain(READER, WANTS, 0)
#else
            store_seq_cst(READER, WANTS, 0)
#endif
        fi
    :: else -> break
    od
}

init {
    atomic {
        run memory_system(WRITER);
        run memory_system(READER);
        run writer();
        run reader()
    };
    _nr_pr == 3;                                        /* Both threads are through. */
    assert(received == N)
}
