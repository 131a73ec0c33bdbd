/**
 * What scripts of waiting are written with that must hit a moment: the testee works at a task, and
 * the kit is its peer in a loop that nothing interrupts.
 *
 * The moments are some ten nanoseconds wide, and what the testee does in between takes some
 * microseconds, so the kit goes by what it sees: it acts a while after a cursor that the testee
 * has just stored, finds out whether that was too early or too late for the moment, and moves a
 * little towards it. So most tries come near.
 *
 * @module
 */

import { endFrame, pattern, whole } from "../../reference/builder.ts";
import { buildFrame } from "../../reference/encode.ts";
import { limitOf, valueOf } from "../../reference/layout.ts";
import { changeState, controlWord, recordWord } from "../peer.ts";
import { sleep } from "../race/processors.ts";
import type { Ran, Wait } from "../protocol.ts";
import { Wrong } from "../verdict.ts";
import { rest, type Watch } from "./watch.ts";

/** What stands everywhere in a ring that a testee reads. */
const FRAME = buildFrame(whole(pattern(8)));
/** Messages at once, so that the testee is at work when the kit is back from giving them. */
const BATCH = 4;
/** The same where the kit asks for one of the last, to have the time to go to sleep. */
const LARGE_BATCH = 12;
/** Sizes of the messages that a testee writes: up to three times as many bytes. */
const WORK_CAPACITY = 64;
const ENDLESS = 1_000_000_000;

/**
 * Who has not moved for so long, though there is something for it, sleeps over it: shorter than any
 * slice, and longer than a busy machine keeps a thread from running, which is some 20 ms with five
 * threads for each processor.
 */
const LATE_MS = 80;
/** Of a gap between two looks of the kit no more than this counts: it was not running itself. */
const GAP_MS = 2;
/** For so long the loop runs before the kit's own events have their turn. */
const CHUNK_MS = 40;
/**
 * What a step may take, on a machine that does other things, too; and where the testee waits for a
 * processor.
 */
const STEP_MS = 5_000;
const BUSY_STEP_MS = 6 * STEP_MS;
/** What a wait of the testee may take: it never comes to that. */
const WAIT_MS = 60_000;
/** Looks, some microseconds of them, between two glances at the clock. */
const GLANCE = 512;
/** Who has not asked again so many looks after a ring sleeps over it, or does not run. */
const QUIET = 20_000;

/** A testee that works, and the kit in a loop. */
export class Tight {
  readonly #watch: Watch;
  readonly #words: Int32Array;
  readonly #reads: boolean;
  /** Where the testee asks to be rung, where its bell is, and the cursor that it stores. */
  readonly #asks: number;
  readonly #bell: number;
  readonly #rung: number;
  readonly #who: number;
  readonly #cursor: number;
  /** The same of the kit. */
  readonly #ownAsks: number;
  readonly #ownBell: number;
  readonly #ownCursor: number;
  readonly #running: Promise<Ran>;
  /** The kit's cursor, and the testee's as it was when the kit last gave or asked. */
  #position: number;
  #before = 0;
  #given = 0;

  private constructor(watch: Watch, reads: boolean, wait: Wait) {
    const { field, own, other } = watch;
    const control = (name: string) => controlWord(field, 0, name);
    this.#watch = watch;
    this.#words = field.words();
    this.#reads = reads;
    const [mine, its] = reads ? ["tail", "head"] as const : ["head", "tail"] as const;
    this.#asks = control(reads ? "reader_wants" : "writer_wants");
    this.#ownAsks = control(reads ? "writer_wants" : "reader_wants");
    this.#bell = recordWord(other, "bell");
    this.#rung = recordWord(other, "rung") + (own >> 5);
    this.#who = 1 << (own & 31);
    this.#ownBell = recordWord(own, "bell");
    this.#cursor = control(its);
    this.#ownCursor = control(mine);
    this.#position = watch.control(mine);
    const source = reads ? { role: "read" } as const : { role: "write", count: ENDLESS } as const;
    const task = { ...source, seed: 1, capacity: WORK_CAPACITY, wait, then: "stay" } as const;
    this.#running = watch.run(task, WAIT_MS);
    this.#running.catch(() => {}); // `end` says it
  }

  /** Has the testee begin, and waits until it asks for what the kit is to give. */
  static async begin(watch: Watch, role: "reader" | "writer", wait: Wait): Promise<Tight> {
    const { capacity } = watch.pipe.channels[0]!;
    if (role === "reader") {
      const area = watch.bytes().subarray(watch.pipe.data, watch.pipe.data + capacity);
      for (let at = 0; at < capacity; at += FRAME.length) area.set(FRAME, at);
    }
    const tight = new Tight(watch, role === "reader", wait);
    await watch.asked(role === "reader" ? "reader_wants" : "writer_wants");
    return tight;
  }

  /** Repeats a step so many times, or for so long; it may say that it is enough. */
  async repeat(tries: number, ms: number, step: () => boolean): Promise<number> {
    const deadline = performance.now() + ms;
    for (let count = 0; count < tries;) {
      const chunk = Math.min(deadline, performance.now() + CHUNK_MS);
      while (count < tries && performance.now() < chunk) {
        count++;
        if (step()) return count;
      }
      if (performance.now() >= deadline) return count;
      await rest(0);
    }
    return tries;
  }

  /** Takes the testee's request as soon as it asks, and rings it. False: it does not ask. */
  ring(): boolean {
    const [words, asks, bell] = [this.#words, this.#asks, this.#bell];
    for (let looks = 0; looks < QUIET; looks++) {
      // Takes the bell's line of the cache away from the testee, whose load of it then takes long.
      Atomics.add(words, bell, 0);
      if (Atomics.exchange(words, asks, 0) === 0) continue;
      this.#ring();
      return true;
    }
    return false;
  }

  /**
   * Gives the testee, which asks for it, one message or room for one, and waits until it has used
   * that; it then looks for more, and asks again.
   */
  giveOne(): void {
    this.#give(this.#reads ? this.#position + FRAME.length : this.#awaitAsking(), 1);
    this.#awaitMove();
  }

  /** Gives it the next; whether it asked for that by then. */
  giveNext(): boolean {
    const tail = Atomics.load(this.#words, this.#cursor);
    return this.#give(this.#reads ? this.#position + FRAME.length : tail, 1);
  }

  /** Waits until the testee has taken what it was given; false where it slept over that. */
  awaitTaken(): boolean {
    if (this.#waits(() => this.#hasTaken(), LATE_MS, STEP_MS)) return true;
    this.#ring();
    const fact = "[wait.ring] the testee does not wake when it is rung";
    this.#await(() => this.#hasTaken(), fact);
    return false;
  }

  /**
   * Brings the testee to where it will store its cursor in the next microseconds; the kit then asks
   * to be rung for that, here or by `ask`. Returns the kit's bell.
   */
  prepare(asks: boolean): number {
    const [words, reads] = [this.#words, this.#reads];
    if (reads) this.giveOne();
    else {
      this.#awaitAsking();
      this.#give(Atomics.load(words, this.#cursor), 1);
      this.#awaitMove();
    }
    this.#before = Atomics.load(words, this.#cursor);
    const bell = Atomics.load(words, this.#ownBell);
    const batch = asks ? LARGE_BATCH : BATCH;
    if (asks) Atomics.store(words, this.#ownAsks, (this.#before + (reads ? 16 : 192)) | 1);
    if (reads) this.#give(this.#position + batch * FRAME.length, batch);
    return bell;
  }

  /** The kit asks to be rung for what the testee does next. */
  askNext(): void {
    this.#before = Atomics.load(this.#words, this.#cursor);
    Atomics.store(this.#words, this.#ownAsks, (this.#before + 16) | 1);
  }

  /**
   * The same while the testee is at it; whether it has done that by now. Who writes goes on, and
   * then rings for what it does next; who reads need not do more.
   */
  ask(): { isDone: boolean; isOver: boolean } {
    Atomics.store(this.#words, this.#ownAsks, (this.#before + 16) | 1);
    const cursor = Atomics.load(this.#words, this.#cursor);
    const isDone = this.#before !== cursor;
    if (!this.#reads) this.#before = cursor;
    return { isDone, isOver: isDone && this.#reads };
  }

  /**
   * Waits until the testee has nothing to do any more; whether it has rung the kit for what it did
   * first. That it owes before it does the next thing, or asks for more.
   */
  awaitRing(bell: number): boolean {
    const [words, cursor, ownBell] = [this.#words, this.#cursor, this.#ownBell];
    let [last, moves, isRung] = [this.#before, 0, true];
    this.#await(() => {
      const now = Atomics.load(words, cursor);
      if (now !== last) {
        last = now;
        if (++moves === 2) isRung = Atomics.load(words, ownBell) !== bell;
      }
      return this.#asksForMore();
    }, "the testee does not ask for more");
    if (moves > 0) isRung &&= Atomics.load(words, ownBell) !== bell;
    this.unask();
    return isRung;
  }

  /** Whether the testee has nothing to do any more. */
  get isIdle(): boolean {
    return this.#asksForMore();
  }

  /** Waits until the testee has nothing to do any more. The kit does not ask to be rung. */
  awaitIdle(): void {
    this.#await(() => this.#asksForMore(), "the testee does not ask for more");
    this.unask();
  }

  /** The kit does not ask to be rung any more. */
  unask(): void {
    Atomics.store(this.#words, this.#ownAsks, 0);
  }

  /** How often the kit was rung. */
  bell(): number {
    return Atomics.load(this.#words, this.#ownBell);
  }

  /** Sleeps while the kit's bell holds a value. */
  sleep(bell: number, ms: number) {
    return this.#watch.field.sleepHere!(this.#ownBell, bell, ms);
  }

  /** Ends the task; the testee must have done what it was to do. Returns how that went. */
  async end(): Promise<Ran> {
    const { field, own, pipe } = this.#watch;
    if (this.#reads) {
      const bytes = buildFrame(endFrame());
      const at = pipe.data + this.#position % pipe.channels[0]!.capacity;
      this.#watch.bytes().set(bytes, at);
      this.#watch.tail = (this.#position + bytes.length) >>> 0;
      this.#watch.publish();
    } else changeState(field, own, valueOf("endpoint_state", "closed"));
    const ran = await this.#running;
    const isDone = this.#reads
      ? ran.end === "ended" && ran.count === this.#given
      : ran.end === "peer.closed";
    if (isDone) return ran;
    const must = this.#reads ? `ended, ${this.#given} messages` : "peer.closed";
    throw new Wrong(`${this.#watch.step}the task: ${ran.end}, ${ran.count} messages, not ${must}`);
  }

  /** Stores the kit's cursor and rings the testee if it asks for that. [wait.exchange] */
  #give(position: number, messages: number): boolean {
    const [words, asks] = [this.#words, this.#asks];
    this.#before = Atomics.load(words, this.#cursor);
    this.#position = position >>> 0;
    this.#given += messages;
    Atomics.store(words, this.#ownCursor, position | 0);
    const wants = Atomics.load(words, asks);
    if (wants === 0) return false;
    if ((position - (wants & ~1) | 0) < 0) return true;
    if (Atomics.exchange(words, asks, 0) !== 0) this.#ring();
    return true;
  }

  /** Waits until the testee asks for more, and returns where that is: it may ask no more then. */
  #awaitAsking(): number {
    let wants = 0;
    this.#await(() => {
      wants = this.#missing();
      return wants !== 0;
    }, "[wait.recheck] the testee does not ask to be rung");
    return wants & ~1;
  }

  /** Waits until the testee has stored its cursor. */
  #awaitMove(): void {
    const [words, cursor] = [this.#words, this.#cursor];
    // As fast as it goes: what comes next is reckoned from here.
    for (let looks = 0; looks < QUIET; looks++) {
      if (Atomics.load(words, cursor) !== this.#before) return;
    }
    const fact = "the testee does not wake when it is rung";
    this.#await(() => Atomics.load(words, cursor) !== this.#before, `[wait.ring] ${fact}`);
  }

  /** Whether the testee has done something with what it was given, or it was not enough. */
  #hasTaken(): boolean {
    const cursor = Atomics.load(this.#words, this.#cursor);
    if (this.#reads) return cursor === (this.#position | 0);
    return cursor !== this.#before || this.#asksForMore();
  }

  /** Whether the testee asks for what it was not given yet. */
  #asksForMore(): boolean {
    return this.#missing() !== 0;
  }

  /** The word with which it does, or 0. */
  #missing(): number {
    const wants = Atomics.load(this.#words, this.#asks);
    return wants !== 0 && (this.#position - (wants & ~1) | 0) < 0 ? wants : 0;
  }

  #ring(): void {
    Atomics.or(this.#words, this.#rung, this.#who); // [wait.rung]
    Atomics.add(this.#words, this.#bell, 1);
    this.#watch.field.notify(this.#bell);
  }

  #await(holds: () => boolean, fact: string): void {
    if (this.#waits(holds, STEP_MS, BUSY_STEP_MS)) return;
    throw new Wrong(`${this.#watch.step}${fact}`);
  }

  /**
   * Waits a span until something holds, and more of them up to a limit, while one of the testee's
   * threads has something to do, and waits for a processor. Returns whether it holds.
   */
  #waits(holds: () => boolean, spanMs: number, mostMs: number): boolean {
    for (let spent = 0; spent < mostMs; spent += spanMs) {
      // Who sleeps may have done it while the kit itself was kept from looking.
      if (this.#holds(holds, spanMs)) return true;
      if (sleep(this.#watch.threads())) return holds();
    }
    return false;
  }

  /** Waits until something holds, for so long as the kit itself runs. */
  #holds(holds: () => boolean, ms: number): boolean {
    for (let looks = 0; looks < GLANCE; looks++) if (holds()) return true;
    let last = performance.now();
    for (let spent = 0; spent < ms;) {
      for (let looks = 0; looks < GLANCE; looks++) if (holds()) return true;
      const now = performance.now();
      spent += Math.min(now - last, GAP_MS);
      last = now;
    }
    return false;
  }
}

/** How large a step of a dial is, in turns of a nanosecond or so. */
const STEP_MIN = 8;
const STEP_MAX = 2_000;
/** Beyond this the testee was held up; it says nothing. */
const TURNS_MAX = 200_000;

/** Finds the moment before which something is too early and after which it is too late. */
export class Dial {
  #turns = 0;
  #step = 64;
  #wasEarly = true;
  #early = 0;
  #late = 0;
  #sink = 1;

  /** Passes the time up to the moment, more or less. */
  pass(): void {
    const turns = this.#turns + (Math.random() - 0.5) * 3 * this.#step;
    let sink = this.#sink;
    for (let turn = 0; turn < turns; turn++) sink = Math.imul(sink, 1_103_515_245) + 12_345 | 0;
    this.#sink = sink;
  }

  /** Says how that was. */
  note(isEarly: boolean): void {
    if (isEarly) this.#early++;
    else this.#late++;
    const factor = isEarly === this.#wasEarly ? 1.3 : 0.5;
    this.#wasEarly = isEarly;
    this.#step = Math.min(STEP_MAX, Math.max(STEP_MIN, this.#step * factor));
    const turns = this.#turns + (isEarly ? this.#step : -this.#step);
    this.#turns = Math.min(TURNS_MAX, Math.max(0, turns));
  }

  /** Whether so many were too early, and so many too late. */
  hasSeen(each: number): boolean {
    return Math.min(this.#early, this.#late) >= each;
  }

  /** Whether the moment lay in between often enough. */
  get isThere(): boolean {
    return Math.min(this.#early, this.#late) > (this.#early + this.#late) / 50;
  }
}

// How soon a testee that polls finds what nobody rings it for.

/**
 * For how long nothing happens before: who pauses for longer and longer, up to some ten
 * milliseconds, does so by then.
 */
const IDLE_MS = 25;
const IDLE_MORE_MS = 45;
/** So many tries, and as many again and one more where that leaves a doubt. */
const TRIES = 7;
const TRIES_MAX = 15;
/** Of so many tries these may be slow; of pauses of 50 ms two thirds are. */
const SLOW_MAX = 1;
const SLOW_IN_ALL_MAX = 5;
/**
 * Where the machine is later than this, a pause that is ten times too long does not show. Such a
 * try does not count, and after so many of them the machine is too slow.
 */
const LATENESS_MAX_MS = 8;
const UNTOLD_MAX = 15;
/** Who has not looked by then does not poll at all. */
const PATIENCE_MS = 3_000;

/** How long a testee took to find something, and by how much a pause of the kit was late. */
interface Try {
  ms: number;
  lateMs: number;
}

/**
 * Puts something before a testee again and again, and throws where it is found late more than now
 * and then; says why where that cannot be told. `put` gives what says whether it was found.
 */
export async function judgePolling(
  clause: string,
  put: () => () => boolean,
): Promise<string | undefined> {
  const tries: Try[] = [];
  const untold: Try[] = [];
  const pollMs = limitOf("wait_poll_ms");
  // A pause takes its time and that of the machine, which the kit's own pauses meanwhile tell.
  const slow = () => tries.filter(({ ms, lateMs }) => ms > 2 * (pollMs + lateMs));
  while (tries.length < TRIES || slow().length > SLOW_MAX && tries.length < TRIES_MAX) {
    const each = await tryOnce(clause, put);
    (each.lateMs > LATENESS_MAX_MS ? untold : tries).push(each);
    if (untold.length < UNTOLD_MAX) continue;
    const lateMs = median(untold.map((one) => one.lateMs));
    return `this machine is too slow for it: a pause of the kit ends ${lateMs.toFixed(0)} ms late`;
  }
  if (slow().length <= SLOW_IN_ALL_MAX) return undefined;
  const shown = tries.map(({ ms }) => ms.toFixed(0)).join(", ");
  throw new Wrong(
    `${clause} found after ${shown} ms, where ${pollMs} are the longest pause and the machine is ` +
      `${median(tries.map(({ lateMs }) => lateMs)).toFixed(1)} ms late`,
  );
}

async function tryOnce(clause: string, put: () => () => boolean): Promise<Try> {
  let lateMs = await lateness(IDLE_MS + Math.random() * IDLE_MORE_MS);
  const begun = performance.now();
  const isFound = put();
  while (!isFound()) {
    if (performance.now() - begun > PATIENCE_MS) throw new Wrong(`${clause} it is never found`);
    lateMs = Math.max(lateMs, await lateness(1));
  }
  return { ms: performance.now() - begun, lateMs };
}

/** Pauses for so many milliseconds, and returns by how many more it was. */
async function lateness(ms: number): Promise<number> {
  const due = performance.now() + ms;
  await rest(ms);
  return performance.now() - due;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}
