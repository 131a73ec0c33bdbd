/**
 * The words beside a peer through which the two plays agree when to stop. They are read after each
 * message, and written once, so that both processors keep the line.
 *
 * @module
 */
import { PATIENCE_MS } from "./peer.ts";

/** Words, each on a line of its own. */
const LINE = 32;
const STOP = 0;
const TOTAL = LINE;
const TAKEN = 2 * LINE;
const TURN = 3 * LINE;
const READY = 4 * LINE;
const DONE = 5 * LINE;
const HERE = 6 * LINE;
const PING = 7 * LINE;
const PONG = 8 * LINE;
/** Doubles after the words: the clocks. */
const CLOCK = 9 * LINE * 4;
const SIZE = CLOCK + 2 * 8;

const ROUNDS = 200;
/** Round trips of the ping-pong for each reading of the clock, and the shortest sample. */
const PINGS = 32;
const SAMPLE_MS = 0.05;
/** An answer that is looked for so often, some 20 us, was interrupted. */
const LATE_LOOKS = 20_000;
const PING_MS_MAX = 60;

/** Some seconds. */
const LOOKS_MAX = 1e9;

function refuse(): never {
  throw new Error("The other thread did not come");
}

/** Makes the memory of a control. */
export function controlMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SIZE);
}

/** One thread's view of the words. */
export class Control {
  readonly #words: Int32Array;
  readonly #clock: Float64Array;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, CLOCK / 4);
    this.#clock = new Float64Array(memory, CLOCK);
  }

  /** This thread has loaded what it needs to begin. */
  addHere(): void {
    Atomics.add(this.#words, HERE, 1);
  }

  /** Waits on the event loop until so many have. */
  waitUntilHere(count: number): Promise<void> {
    return this.#waitUntil(HERE, count, "come");
  }

  /** Ends that are there, or, when a play counts them, that are done. */
  get ready(): number {
    return Atomics.load(this.#words, READY);
  }

  addReady(): void {
    Atomics.add(this.#words, READY, 1);
  }

  /** Waits on the event loop until so many are. */
  waitUntilReady(count: number): Promise<void> {
    return this.#waitUntil(READY, count, "come");
  }

  /** This end has played. */
  addDone(): void {
    Atomics.add(this.#words, DONE, 1);
  }

  /** Waits on the event loop until both have: closing may take away what the other still reads. */
  waitUntilBothDone(): Promise<void> {
    return this.#waitUntil(DONE, 2, "end");
  }

  /** Whether the receiver has seen enough. */
  get stopped(): boolean {
    return Atomics.load(this.#words, STOP) !== 0;
  }

  stop(): void {
    Atomics.store(this.#words, STOP, 1);
  }

  /** Says that the warm-up is over: `total` is no longer 0, and not yet any number of messages. */
  begin(): void {
    this.total = -1;
  }

  /** How many messages there will be in all; below 1 while that is open. Set it before the last. */
  get total(): number {
    return Atomics.load(this.#words, TOTAL);
  }

  set total(count: number) {
    Atomics.store(this.#words, TOTAL, count);
  }

  /** How many messages the receiver has taken, for senders that nothing else holds back. */
  get taken(): number {
    return Atomics.load(this.#words, TAKEN);
  }

  set taken(count: number) {
    Atomics.store(this.#words, TAKEN, count);
  }

  /**
   * Role `b`: returns what to add to a time of `a`'s clock to have it in the own. Both call at the
   * same time; the round trip with the shortest way wins, so that a pause in between costs nothing.
   */
  readClock(): number {
    let best = Infinity;
    let offset = 0;
    for (let round = 1; round <= ROUNDS; round++) {
      const start = performance.now();
      Atomics.store(this.#words, TURN, 2 * round - 1);
      this.#waitFor(2 * round);
      const end = performance.now();
      const theirs = this.#clock[0] as number;
      if (end - start >= best) continue;
      best = end - start;
      offset = (start + end) / 2 - theirs;
    }
    return offset;
  }

  /** Role `a`: shows its clock to `b`. */
  showClock(): void {
    for (let round = 1; round <= ROUNDS; round++) {
      this.#waitFor(2 * round - 1);
      this.#clock[0] = performance.now();
      Atomics.store(this.#words, TURN, 2 * round);
    }
  }

  /**
   * Role `a`: sends one word there and back for so many milliseconds, and returns how long a round
   * trip took in nanoseconds: the median of many short times. What was interrupted does not count:
   * two threads that were asleep may begin on one processor. `undefined` if that does not end. The
   * other thread calls `pong`; each waits for the other to come.
   */
  ping(ms: number): number | undefined {
    const words = this.#words;
    const samples: number[] = [];
    // Odd is the last of a game, which is where an earlier one has stopped.
    let turn = (Atomics.load(words, PING) | 1) + 1;
    this.#pingAndWait(turn);
    let now = performance.now();
    const end = now + PING_MS_MAX;
    let sampled = 0;
    while (sampled < ms && now < end) {
      const start = now;
      let count = 0;
      let looks = 0;
      do {
        for (let n = 0; n < PINGS && looks < LATE_LOOKS; n++) {
          turn = (turn + 2) | 0;
          Atomics.store(words, PING, turn);
          looks = 0;
          while (Atomics.load(words, PONG) !== turn) if (++looks > LOOKS_MAX) refuse();
        }
        count += PINGS;
        now = performance.now();
      } while (looks < LATE_LOOKS && now - start < SAMPLE_MS);
      if (looks >= LATE_LOOKS) continue;
      samples.push((now - start) / count);
      sampled += now - start;
    }
    this.#pingAndWait(turn | 1);
    if (samples.length === 0) return undefined;
    // The first ones may still be of processors that were asleep.
    const settled = samples.slice(samples.length / 3).sort((a, b) => a - b);
    return Math.round((settled[settled.length >> 1] as number) * 1e6);
  }

  /** Role `b`: sends back what `ping` sends. */
  pong(): void {
    const words = this.#words;
    let seen = Atomics.load(words, PONG);
    do {
      let looks = 0;
      let turn = Atomics.load(words, PING);
      while (turn === seen) {
        if (++looks > LOOKS_MAX) refuse();
        turn = Atomics.load(words, PING);
      }
      seen = turn;
      Atomics.store(words, PONG, turn);
    } while ((seen & 1) === 0);
  }

  #pingAndWait(turn: number): void {
    Atomics.store(this.#words, PING, turn);
    let looks = 0;
    while (Atomics.load(this.#words, PONG) !== turn) if (++looks > LOOKS_MAX) refuse();
  }

  /** The start of the schedule, in the clock of `a`. Set it before the first message. */
  get start(): number {
    return this.#clock[1] as number;
  }

  set start(time: number) {
    this.#clock[1] = time;
  }

  async #waitUntil(word: number, count: number, what: string): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (Atomics.load(this.#words, word) < count) {
      if (performance.now() > deadline) throw new Error(`The other end did not ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  #waitFor(turn: number): void {
    const deadline = performance.now() + PATIENCE_MS;
    while (Atomics.load(this.#words, TURN) !== turn) {
      if (performance.now() > deadline) throw new Error("The other end did not come");
    }
  }
}

const { port1, port2 } = new MessageChannel();
let resume = () => {};
port1.onmessage = () => resume();

/** Lets the event loop turn once; a timer would wait a millisecond. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    resume = resolve;
    port2.postMessage(null);
  });
}
