/**
 * Texts from thread to thread, with no library: the least that is still a correct program. A ring
 * of frames for each direction, each a word and a text: that of one message, or of several.
 *
 * Who has stored a cursor looks whether the other sleeps on it, and only then wakes it; who goes to
 * sleep says so first, and sleeps only while the cursor is the one that it has seen. So no wake is
 * lost. Nothing is checked, nobody closes, and a frame must fit into half of the ring.
 * `Port` and `SABMessagePort` are what a library with such an end needs of its interface; for
 * programs that start, the runner makes a module of each, as large as the goals have it.
 *
 * @module
 */
import { PATIENCE_MS, type Role } from "./peer.ts";

/** The words of a ring, on lines of their own: words written, words read, and who sleeps. */
const TAIL = 0;
const HEAD = 32;
const READER_SLEEPS = 64;
const WRITER_SLEEPS = 96;
/** Where the frames begin, in words and in bytes. */
const FRAMES = 128;
const CONTROL_SIZE = 4 * FRAMES;
/** In place of a frame: the next one is at the start of the ring. */
const SKIP = 0;
/**
 * Looks for a message before a sleep, some 50 to 100 us, and several times that before they are
 * compiled. `README.md` says what they buy.
 */
const LOOKS = 5_000;
/** So many messages at most before the other events of a loop have their turn, by a timer. */
const TURN = 8_192;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Both ends of one side. */
export interface BareEnds {
  readonly writer: BareWriter;
  readonly reader: BareReader;
}

/** The memory for two rings, with so many bytes each for frames. */
export function bareMemory(capacity: number): SharedArrayBuffer {
  return new SharedArrayBuffer(2 * (CONTROL_SIZE + capacity));
}

/** The ends of a side, in memory of any size: half of it for each ring. */
export function bareEnds(memory: SharedArrayBuffer, side: Role, looks: boolean): BareEnds {
  const size = memory.byteLength >> 1;
  const [out, back] = side === "a" ? [0, size] : [size, 0];
  return {
    writer: new BareWriter(memory, out, size),
    reader: new BareReader(memory, back, size, looks),
  };
}

/** The end that writes. */
export class BareWriter {
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #capacity: number;
  /** Where a text is encoded first: browsers refuse to do so in shared memory. */
  readonly #own: Uint8Array | undefined;
  #tail = 0;
  #head = 0;

  constructor(memory: SharedArrayBuffer, offset: number, size: number) {
    this.#words = new Int32Array(memory, offset, size >> 2);
    this.#bytes = new Uint8Array(memory, offset, size);
    this.#capacity = (size >> 2) - FRAMES;
    if (!("Deno" in globalThis || "process" in globalThis)) this.#own = new Uint8Array(size);
  }

  /** Writes a text, all of whose letters are bytes, if there is room for it. */
  tryWrite(text: string, isBatch: boolean): boolean {
    const words = this.#words;
    const extent = 1 + ((text.length + 3) >> 2);
    let at = this.#tail % this.#capacity;
    const skipped = at + extent > this.#capacity ? this.#capacity - at : 0;
    const tail = this.#tail + skipped + extent;
    if (tail - this.#head > this.#capacity) {
      this.#head = Atomics.load(words, HEAD);
      if (tail - this.#head > this.#capacity) return false;
    }
    if (skipped > 0) {
      words[FRAMES + at] = SKIP;
      at = 0;
    }
    const start = 4 * (FRAMES + at + 1);
    const own = this.#own;
    const { written } = encoder.encodeInto(text, own ?? this.#bytes.subarray(start));
    if (own !== undefined) this.#bytes.set(own.subarray(0, written), start);
    if (written !== text.length) throw new Error(`A text of ${text.length} has ${written} bytes`);
    words[FRAMES + at] = 2 * written + Number(isBatch);
    this.#tail = tail;
    Atomics.store(words, TAIL, tail);
    if (Atomics.load(words, READER_SLEEPS) !== 0) {
      Atomics.store(words, READER_SLEEPS, 0);
      Atomics.notify(words, TAIL);
    }
    return true;
  }

  /** Writes the text of a message; blocks until there is room. */
  write(text: string): void {
    while (!this.tryWrite(text, false)) {
      Atomics.store(this.#words, WRITER_SLEEPS, 1);
      const woken = Atomics.wait(this.#words, HEAD, this.#head, PATIENCE_MS);
      if (woken === "timed-out") throw new Error("The other end does not read");
    }
  }

  /** Writes a text as soon as there is room. */
  async writeLater(text: string, isBatch: boolean): Promise<void> {
    while (!this.tryWrite(text, isBatch)) {
      Atomics.store(this.#words, WRITER_SLEEPS, 1);
      const wait = Atomics.waitAsync(this.#words, HEAD, this.#head, PATIENCE_MS);
      const woken = wait.async ? await wait.value : wait.value;
      if (woken === "timed-out") throw new Error("The other end does not read");
    }
  }
}

/** The end that reads. */
export class BareReader {
  /** Sleeps so far. */
  sleeps = 0;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #capacity: number;
  /** What was copied out of the ring; the longest frame fits in. */
  readonly #own: Uint8Array;
  /** Looks before the next sleep, and before those after it. */
  #looks = 0;
  readonly #laterLooks: number;
  #head = 0;
  #tail = 0;
  /** Messages of one text, and how many of them were taken. */
  #batch: readonly unknown[] = [];
  #taken = 0;
  #isOpen = true;

  constructor(memory: SharedArrayBuffer, offset: number, size: number, looks: boolean) {
    this.#words = new Int32Array(memory, offset, size >> 2);
    this.#bytes = new Uint8Array(memory, offset, size);
    this.#capacity = (size >> 2) - FRAMES;
    this.#own = new Uint8Array(size >> 1);
    this.#laterLooks = looks ? LOOKS : 0;
  }

  /** The next message, or `undefined` if none is there. */
  tryRead(): unknown {
    if (this.#taken < this.#batch.length) return this.#batch[this.#taken++];
    const words = this.#words;
    if (this.#tail === this.#head) {
      this.#tail = Atomics.load(words, TAIL);
      if (this.#tail === this.#head) return undefined;
    }
    let at = this.#head % this.#capacity;
    if (words[FRAMES + at] === SKIP) {
      this.#head += this.#capacity - at;
      at = 0;
    }
    const word = words[FRAMES + at] as number;
    const size = word >> 1;
    const start = 4 * (FRAMES + at + 1);
    this.#own.set(this.#bytes.subarray(start, start + size));
    this.#head += 1 + ((size + 3) >> 2);
    Atomics.store(words, HEAD, this.#head);
    if (Atomics.load(words, WRITER_SLEEPS) !== 0) {
      Atomics.store(words, WRITER_SLEEPS, 0);
      Atomics.notify(words, HEAD);
    }
    const value: unknown = JSON.parse(decoder.decode(this.#own.subarray(0, size)));
    if ((word & 1) === 0) return value;
    this.#batch = value as readonly unknown[];
    this.#taken = 1;
    return this.#batch[0];
  }

  /** The next message; blocks for so long at most, and then returns `undefined`. */
  read(timeout: number): unknown {
    while (true) {
      const value = this.tryRead();
      if (value !== undefined) return value;
      if (!this.#look() && this.#sleep(timeout) === "timed-out") return undefined;
    }
  }

  /**
   * Calls for each message on the event loop, until the end is closed. Blocks for so many
   * milliseconds at most before it sleeps on the loop.
   */
  async listen(take: (value: unknown) => void, nap = 0): Promise<void> {
    const release = holdLoop();
    let count = 0;
    while (this.#isOpen) {
      const value = this.tryRead();
      if (value !== undefined) {
        take(value);
        if (++count % TURN === 0) await new Promise((resolve) => setTimeout(resolve));
        continue;
      }
      // What its handlers have posted goes out before it looks or stands still.
      await undefined;
      if (this.#look() || nap > 0 && this.#sleep(nap) !== "timed-out") continue;
      Atomics.store(this.#words, READER_SLEEPS, 1);
      const wait = Atomics.waitAsync(this.#words, TAIL, this.#tail, PATIENCE_MS);
      if (!wait.async) continue;
      this.sleeps++;
      await wait.value;
    }
    release();
  }

  /** Ends `listen`. */
  close(): void {
    this.#isOpen = false;
    Atomics.notify(this.#words, TAIL);
  }

  /** Whether something comes while it looks. */
  #look(): boolean {
    for (let looks = this.#looks; looks > 0; looks--) {
      if (Atomics.load(this.#words, TAIL) !== this.#tail) return true;
    }
    // In its first wait it sleeps at once: the other thread may need this processor to begin.
    this.#looks = this.#laterLooks;
    return false;
  }

  #sleep(timeout: number): string {
    Atomics.store(this.#words, READER_SLEEPS, 1);
    const woken = Atomics.wait(this.#words, TAIL, this.#tail, timeout);
    if (woken === "ok") this.sleeps++;
    return woken;
  }
}

/**
 * Keeps the event loop alive, which a wait alone does not in Deno and Node, in the way that takes
 * the least of a thread that has just started. Deno: an open channel 0.17 ms, one with a handler
 * 0.4, the first timer 5. Node: the first timer below 0.1 ms, the first handler of a channel 30.
 */
function holdLoop(): () => void {
  if ("process" in globalThis && !("Deno" in globalThis)) {
    const timer = setInterval(() => {}, 2 ** 30);
    return () => clearInterval(timer);
  }
  // A page and its workers stay alive, and have a channel as well.
  const { port1 } = new MessageChannel();
  port1.start();
  return () => port1.close();
}

/** Of each ring of a `Port`. */
const CAPACITY = 64 * 1024;

/** What the other thread gets. */
interface Handoff {
  readonly memory: SharedArrayBuffer;
}

/** One end of a port, where each message is a text. */
export class Port {
  readonly #memory: SharedArrayBuffer;
  readonly #ends: BareEnds;

  constructor(memory: SharedArrayBuffer, side: Role) {
    this.#memory = memory;
    this.#ends = bareEnds(memory, side, false);
  }

  static create(): Port {
    return new Port(bareMemory(CAPACITY), "a");
  }

  static from({ memory }: Handoff): Port {
    return new Port(memory, "b");
  }

  handoff(): Handoff {
    return { memory: this.#memory };
  }

  write(value: unknown): void {
    this.#ends.writer.write(JSON.stringify(value));
  }

  read(): unknown {
    return this.#ends.reader.read(PATIENCE_MS);
  }

  set onmessage(handler: (event: { data: unknown }) => void) {
    this.#ends.reader.listen((data) => handler({ data }));
  }
}

/** Of both directions: what the library takes if one says nothing. */
const SIZE = 256 * 1024;
/** Posts of one turn that become one text, at most; 16 and 120 were no better. */
const BATCH = 64;

/** The interface of `sab-message-port`, as far as it is played: a turn's posts are one text. */
export class SABMessagePort {
  readonly #memory: SharedArrayBuffer;
  readonly #ends: BareEnds;
  /** Not written yet. */
  #values: unknown[] = [];
  #written: Promise<void> | undefined;

  constructor(side: Role = "a", memory = new SharedArrayBuffer(SIZE), looks = false) {
    this.#memory = memory;
    this.#ends = bareEnds(memory, side, looks);
  }

  static from({ memory }: { memory: SharedArrayBuffer }): SABMessagePort {
    return new SABMessagePort("b", memory);
  }

  postInit(): [unknown, Transferable[]] {
    return [{ memory: this.#memory }, []];
  }

  postMessage(value: unknown): Promise<void> {
    this.#values.push(value);
    return this.#written ??= this.#writeAll();
  }

  read(timeout?: number): unknown;
  read(timeout: number, blocking: true, count: number): unknown[];
  /** The newest first, where a count is given. */
  read(timeout?: number, _blocking?: true, count?: number): unknown {
    const { reader } = this.#ends;
    const value = reader.read(timeout ?? PATIENCE_MS);
    if (count === undefined) return value ?? null;
    const values: unknown[] = [];
    let next = value;
    while (next !== undefined) {
      values.push(next);
      next = values.length < count ? reader.tryRead() : undefined;
    }
    return values.reverse();
  }

  set onmessage(handler: (event: { data: unknown }) => void) {
    this.#ends.reader.listen((data) => handler({ data }));
  }

  close(): void {
    this.#ends.reader.close();
  }

  /** At the end of the turn. */
  async #writeAll(): Promise<void> {
    await undefined;
    const { writer } = this.#ends;
    while (this.#values.length > 0) {
      const text = JSON.stringify(this.#values.splice(0, BATCH));
      if (!writer.tryWrite(text, true)) await writer.writeLater(text, true);
    }
    this.#written = undefined;
  }
}
