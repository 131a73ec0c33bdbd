/**
 * The tasks of live runs, by every way in which the implementation can wait.
 *
 * @module
 */

import { MessageError, Port, statsOf } from "../../../impl-ts/src/mod.ts";
import {
  lastRead,
  readMessage,
  readMessageAsync,
  tryReadMessage,
  tryWriteMessage,
  writeMessage,
} from "../../../impl-ts/src/more/raw.ts";
import { LostError } from "../../../impl-ts/src/fanout/fanout.ts";
import type { MailboxReader, MailboxWriter } from "../../../impl-ts/src/mailbox/mailbox.ts";
import type { Stats, Writer } from "../../../impl-ts/src/mod.ts";
import { fill, letters, Workload } from "../../kit/live/workload.ts";
import { Transcript } from "../../kit/crc32.ts";
import type { Failed, Mixing, Ran, Task } from "../../kit/protocol.ts";
import type { Ends } from "./adapter.ts";

export type FailureOf = (error: unknown) => Failed | "refused" | undefined;

/** How messages come and go, whatever they go through. */
export interface Ways {
  /** Returns a promise where it is asynchronous. Throws at its deadline. */
  write(tag: number, payload: Uint8Array): void | Promise<void>;
  /** Nothing at the end of the stream. Throws at its deadline. */
  read(): Incoming | undefined | Promise<Incoming | undefined>;
  /** The same without blocking, whatever way the rest waits. */
  readAsync?(): Promise<Incoming | undefined>;
  end(): void | Promise<void>;
  close(): void;
  stats(): Partial<Stats>;
  /** Writes a value by one of the calls that a port has for that. */
  mix?(way: Mixing, value: unknown): void | Promise<void>;
}

/** A message; or an entry of the transcript that has none. */
export interface Incoming {
  tag: number;
  payload: Uint8Array | undefined;
}

/** Ends a task with a code. */
export class Stop extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Runs a task on a pipe or a port. */
export function runPipe(
  ends: Ends,
  task: Task,
  timeout: number,
  failureOf: FailureOf,
  values = false,
): Promise<Ran> {
  const ways = pipeWays(ends, task, timeout);
  return run(values ? { ...ways, ...valueWays(ends, task, timeout) } : ways, task, failureOf);
}

/** The reader and the writer; a port is both. */
function endsOf(ends: Ends): Ends {
  return ends instanceof Port ? { reader: ends, writer: ends } as unknown as Ends : ends;
}

/** Runs a task on a mailbox. */
export function runMailbox(
  ends: { reader?: MailboxReader; writer?: MailboxWriter },
  task: Task,
  timeout: number,
  failureOf: FailureOf,
): Promise<Ran> {
  return run(mailboxWays(ends, task, timeout), task, failureOf, letters);
}

function mix(ends: Ends, way: Mixing, value: unknown, timeout: number): void | Promise<void> {
  const writer = endsOf(ends).writer as Writer<unknown>;
  if (way === "block") return writer.write(value, { timeout });
  if (way === "promise") return writer.writeAsync(value, { timeout });
  return (ends as Port<unknown>).postMessage(value);
}

function pipeWays(ends: Ends, { wait }: Task, timeout: number): Ways {
  const { reader, writer } = endsOf(ends);
  const late = <T>(message: T | undefined): T | undefined => {
    if (message === undefined && !reader!.ended) throw new Stop("wait.timeout");
    return message;
  };
  const common = {
    readAsync: async () => late(await readMessageAsync(reader!, { timeout })),
    close: () => (reader ?? writer)!.close(),
    stats: () => statsOf((reader ?? writer)!),
    mix: (way: Mixing, value: unknown) => mix(ends, way, value, timeout),
  };
  if (wait === "event") {
    return {
      ...common,
      write: (_tag, payload) => writer!.writeAsync(payload, { timeout }),
      read: common.readAsync,
      end: () => writer?.endAsync({ timeout }),
    };
  }
  const calls = {
    ...common,
    write: (tag: number, payload: Uint8Array) =>
      writeMessage(writer!, { codec: 0, tag, payload }, { timeout }),
    read: () => late(readMessage(reader!, { timeout })),
    end: () => writer?.end(),
  };
  if (wait === "block") return calls;
  return {
    ...calls,
    write: (tag, payload) => {
      const message = { codec: 0, tag, payload };
      try {
        return poll(timeout, () => tryWriteMessage(writer!, message) || undefined).then(() => {});
      } catch (error) {
        // What never fits the ring at once has no call that does not wait.
        if (!(error instanceof RangeError)) throw error;
        return calls.write(tag, payload);
      }
    },
    read: async () => {
      const got = await poll(
        timeout,
        () => tryReadMessage(reader!) ?? (reader!.ended ? null : undefined),
      );
      return got ?? undefined;
    },
  };
}

/** The same by the calls that give values, which of these messages are bytes. */
function valueWays(ends: Ends, { wait }: Task, timeout: number): Pick<Ways, "read"> {
  const { reader } = endsOf(ends);
  const toMessage = (value: unknown): Incoming | undefined => {
    if (value instanceof Uint8Array) return { tag: lastRead(reader!).tag, payload: value };
    if (value === undefined && reader!.ended) return undefined;
    throw new Stop(value === undefined ? "wait.timeout" : "message.codec");
  };
  if (wait === "event") {
    return { read: async () => toMessage(await reader!.readAsync({ timeout })) };
  }
  if (wait === "block") return { read: () => toMessage(reader!.read({ timeout })) };
  return {
    read: async () => {
      const ended = Symbol("ended");
      const take = () => reader!.tryRead() ?? (reader!.ended ? ended : undefined);
      const got = await poll<unknown>(timeout, take);
      return got === ended ? undefined : toMessage(got);
    },
  };
}

function mailboxWays(
  { reader, writer }: { reader?: MailboxReader; writer?: MailboxWriter },
  { wait }: Task,
  timeout: number,
): Ways {
  const text = (payload: Uint8Array) => new TextDecoder().decode(payload);
  const common = {
    end: () => {},
    close: () => (reader ?? writer)!.close(),
    stats: () => (reader ?? writer)!.stats,
  };
  if (wait === "event") {
    return {
      ...common,
      write: (tag, payload) => writer!.writeAsync([tag, text(payload)], { timeout }),
      read: async () => toIncoming(await reader!.readAsync({ timeout })),
    };
  }
  const write = (tag: number, payload: Uint8Array) =>
    writer!.write([tag, text(payload)], { timeout });
  if (wait === "block") {
    return { ...common, write, read: () => toIncoming(reader!.read({ timeout })) };
  }
  return {
    ...common,
    write: (tag, payload) => {
      const value = [tag, text(payload)];
      try {
        return poll(timeout, () => writer!.tryWrite(value) || undefined).then(() => {});
      } catch (error) {
        if (!(error instanceof RangeError)) throw error; // too large for one part
        return write(tag, payload);
      }
    },
    read: async () => toIncoming(await poll(timeout, () => reader!.tryRead())),
  };
}

function toIncoming(value: unknown): Incoming {
  if (value === undefined) throw new Stop("wait.timeout");
  const [tag, text] = Array.isArray(value) ? value : [];
  if (typeof tag !== "number" || typeof text !== "string") throw new Stop("message.json");
  return { tag, payload: new TextEncoder().encode(text) };
}

/** Calls again and again until something comes. The first call, and its errors, come at once. */
export function poll<T>(timeout: number, call: () => T | undefined): Promise<T> {
  const first = call();
  return first !== undefined ? Promise.resolve(first) : pollOn(timeout, call);
}

async function pollOn<T>(timeout: number, call: () => T | undefined): Promise<T> {
  const deadline = performance.now() + timeout;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    const got = call();
    if (got !== undefined) return got;
    if (performance.now() >= deadline) throw new Stop("wait.timeout");
  }
}

/** Runs a task, by those ways. */
export async function run(
  ways: Ways,
  task: Task,
  failureOf: FailureOf,
  make: typeof fill = fill,
): Promise<Ran> {
  const transcript = new Transcript(task.record);
  const { close_ms } = task;
  const timer = close_ms === undefined ? undefined : setTimeout(() => ways.close(), close_ms);
  const end = await perform(ways, task, transcript, make).catch((error) => {
    if (error instanceof Stop) return { end: error.code };
    const failure = failureOf(error);
    if (failure === undefined || failure === "refused") throw error;
    const { code, reason } = failure;
    return reason === undefined ? { end: code } : { end: code, reason };
  });
  clearTimeout(timer);
  const { count, size, crc32, record, lost } = transcript;
  const { parks, wakes, lateWakes } = ways.stats();
  return {
    count,
    size,
    crc32,
    ...end,
    ...(parks !== undefined && { parks }),
    ...(wakes !== undefined && { wakes }),
    ...(lateWakes !== undefined && { late_wakes: lateWakes }),
    ...(task.lossy && { lost }),
    ...(record !== undefined && { record }),
  };
}

async function perform(
  ways: Ways,
  task: Task,
  transcript: Transcript,
  make: typeof fill,
): Promise<{ end: string }> {
  const end = await roles[task.role](ways, task, transcript, make);
  if (task.then === "close") ways.close();
  else if (task.then === "end" && task.role !== "drive") await ways.end();
  return { end };
}

type Perform = (
  ways: Ways,
  task: Task,
  transcript: Transcript,
  make: typeof fill,
) => Promise<string>;

const roles: Record<Task["role"], Perform> = {
  async write(ways, task, transcript, make) {
    const writer = new Source(ways, task, make);
    for (let index = 0; index < task.count!; index++) {
      await pause(task, index);
      const sending = writer.next();
      if (sending instanceof Promise) await sending;
      transcript.add(writer.tag, writer.payload);
    }
    return "done";
  },
  async read(ways, task, transcript) {
    for (let index = 0; index < (task.count ?? Infinity); index++) {
      await pause(task, index);
      try {
        const coming = ways.read();
        const message = coming instanceof Promise ? await coming : coming;
        if (message === undefined) return "ended";
        if (message.payload === undefined) transcript.addNone(message.tag);
        else transcript.add(message.tag, message.payload);
      } catch (error) {
        if (!(task.lossy && error instanceof MessageError)) throw error;
        const lost = error instanceof LostError ? error.count : undefined;
        if (lost !== undefined) transcript.addNone(lost);
        transcript.lost += lost ?? 1;
      }
    }
    return "done";
  },
  async echo(ways, task, transcript) {
    for (let index = 0; index < (task.count ?? Infinity); index++) {
      await pause(task, index);
      const message = await ways.read();
      if (message === undefined) return "ended";
      transcript.add(message.tag, message.payload!);
      await ways.write(message.tag, message.payload!);
    }
    return "done";
  },
  async drive(ways, task, transcript, make) {
    const source = new Source(ways, task, make);
    const underWay: number[] = [];
    let sum = 0;
    for (let index = 0; index < task.count! || underWay.length > 0;) {
      if (index < task.count! && sum <= task.capacity) {
        await pause(task, index++);
        await source.next();
        underWay.push(source.payload.length);
        sum += source.payload.length;
        continue;
      }
      const message = await ways.read();
      if (message === undefined) return "ended"; // too early, as the transcript shows
      transcript.add(message.tag, message.payload!);
      sum -= underWay.shift()!;
    }
    await ways.end();
    const more = await ways.read();
    if (more !== undefined) transcript.add(more.tag, more.payload!);
    return "ended";
  },
  async mixed(ways, task, transcript) {
    const promises: Promise<void>[] = [];
    // All of it in one job: the event loop does not turn in between.
    for (const [index, [way, size]] of task.order!.entries()) {
      const text = letters({ tag: index, size, first: index }, new Uint8Array(size));
      try {
        const sending = ways.mix!(way, [index, new TextDecoder().decode(text)]);
        if (sending !== undefined) promises.push(sending);
      } catch (error) {
        // Where a promise is under way, a call that waits may be the caller's mistake.
        if (way !== "block" || !(error instanceof TypeError)) throw error;
        continue;
      }
      transcript.add(index, text);
    }
    const ending = task.then === "end" ? ways.end() : undefined; // in the same job
    await Promise.all([...promises, ending]);
    return "done";
  },
  async cross(ways, task, transcript, make) {
    const reading = ways.readAsync!();
    reading.catch(() => {}); // a write that fails says more
    const source = new Source(ways, task, make);
    for (let index = 0; index < task.count!; index++) await source.next();
    const message = await reading;
    if (message === undefined) return "ended";
    transcript.add(message.tag, message.payload!);
    return "done";
  },
};

/** Writes the messages of a seed. */
class Source {
  tag = 0;
  payload: Uint8Array = new Uint8Array(0);
  readonly #ways: Ways;
  readonly #workload: Workload;
  readonly #make: typeof fill;
  readonly #scratch: Uint8Array;
  readonly #tagged: boolean;

  constructor(ways: Ways, { seed, capacity, wait }: Task, make: typeof fill) {
    this.#ways = ways;
    this.#workload = new Workload(seed, capacity);
    this.#make = make;
    this.#scratch = new Uint8Array(this.#workload.sizeMax);
    // The implementation's asynchronous writes take values, and no tags; a mailbox has them inside.
    this.#tagged = wait !== "event" || make !== fill;
  }

  next(): void | Promise<void> {
    const message = this.#workload.next();
    this.tag = this.#tagged ? message.tag : 0;
    this.payload = this.#make(message, this.#scratch);
    return this.#ways.write(this.tag, this.payload);
  }
}

function pause({ delay_us, delay_every }: Task, index: number): Promise<void> | void {
  if (delay_us === undefined || index % delay_every! !== 0) return;
  return new Promise((resolve) => setTimeout(resolve, delay_us / 1000));
}
