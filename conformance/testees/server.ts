/**
 * The part of a testee that has nothing to do with its port: handles, memory, and how answers and
 * failures become replies. For testees in TypeScript, in a process or a worker.
 *
 * @module
 */

import type { Command, Done, Failed, Gotten, Hello, Opening } from "../kit/protocol.ts";
import type {
  Outgoing,
  Place,
  Ran,
  Reply,
  Taken,
  TakenMany,
  Task,
  TreeTask,
  Wait,
} from "../kit/protocol.ts";
import type { Transport } from "../kit/protocol.ts";
import { fromHex } from "../reference/bytes.ts";
import type { Settled, Value } from "../reference/case.ts";

type MaybePromise<T> = T | Promise<T>;

/** One end that was opened. What a role cannot do is left out, and then declined. */
export interface Session {
  /** By those calls, where it is said by which. */
  read?(timeoutMs: number, wait?: Wait): MaybePromise<Taken>;
  peek?(): Taken;
  release?(): void;
  /** Whether there was room; without `timeoutMs` it does not wait. */
  write?(message: Outgoing, timeoutMs: number | undefined, wait?: Wait): MaybePromise<boolean>;
  /** Claims a place, and leaves the claim open; returns whether there was room. */
  claim?(message: Outgoing, size: number): boolean;
  /** Fills the claimed place in, and finishes it; or gives it up. */
  finish?(message: Outgoing): void;
  abandon?(): void;
  publish?(): void;
  end?(): void;
  /** Gives the peer's endpoint back, whose owner is dead. */
  vacate?(): void;
  /** As the reader of a fanout in mode `hold`. */
  leave?(): void;
  join?(): void;
  resume?(timeoutMs: number): void;
  run?(task: Task, timeoutMs: number): MaybePromise<Ran>;
  /** What an end of a property has beside `write`; `changed` says nothing where it was in time. */
  get?(): Gotten;
  clear?(): void;
  changed?(timeoutMs: number): void;
  /** What a port has that was opened with `serves`. */
  calls?: Calling | undefined;
  /** Of a hub: the port to a client. */
  client?(index: number): Session | undefined;
  close(): void;
}

/** The calls that a testee makes; each has its number, counted from 0. */
export interface Calling {
  /** Makes a call and does not wait for its answer. One that throws has taken its number, too. */
  call(name: string, values: Value[], items: boolean): MaybePromise<void>;
  /** Makes a call and waits for its answer, by those calls where it is said by which. */
  ask(name: string, values: Value[], timeoutMs: number, wait?: Wait): MaybePromise<Settled>;
  notify(name: string, values: Value[]): MaybePromise<void>;
  giveUp(call: number): MaybePromise<void>;
  outcome(call: number): MaybePromise<Settled>;
  item(call: number): MaybePromise<Settled>;
  /** How many calls of `hold` were told. */
  told(): number;
  run(task: TreeTask, timeoutMs: number): MaybePromise<Ran>;
}

/** A port, by this interface. */
export interface Adapter {
  hello: Hello;
  /** Opens memory of the testee's own, or handed over. */
  open(memory: Uint8Array, opening: Opening): Session | undefined;
  /** Opens a file, if the testee offers files. */
  openFile?(path: string, opening: Opening): Session | undefined;
  /** The bytes of a file as memory, which others see. */
  mapFile?(path: string): Uint8Array;
  /** Opens a side of a stream, if the testee offers streams. */
  openStream?(transport: Transport, opening: Opening): Promise<Session>;
  /** What an error says, `refused` for a mistake of the caller; nothing where it is neither. */
  failureOf(error: unknown): Failed | "refused" | undefined;
}

/** Memory that was handed over under a name. */
export interface Shared {
  memory: string;
  buffer: ArrayBufferLike;
  offset: number;
  size: number;
  wasm?: WebAssembly.Memory;
  index?: number;
}

interface Handle {
  memory: Uint8Array | undefined;
  session: Session | undefined;
}

const OK: Done = { outcome: "ok" };

/** Answers commands, one at a time. */
export class Server {
  readonly #adapter: Adapter;
  readonly #handles = new Map<number, Handle>();
  readonly #shared = new Map<string, Uint8Array>();

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
  }

  /** Keeps memory for an `open` that names it. */
  share({ memory, buffer, offset, size }: Shared): void {
    this.#shared.set(memory, new Uint8Array(buffer, offset, size));
  }

  /** Answers one command. Throws what the port does not know: a testee dies of it. */
  async answer(command: Command & { id: number }): Promise<Reply & { id: number }> {
    const { id } = command;
    try {
      return { id, ...await this.#answer(command) };
    } catch (error) {
      const failure = this.#adapter.failureOf(error);
      if (failure === undefined) throw error;
      if (failure === "refused") return { id, result: { outcome: "refused" } };
      return { id, error: failure };
    }
  }

  async #answer(command: Command): Promise<Reply> {
    switch (command.command) {
      case "start":
        return { result: this.#adapter.hello };
      case "open":
        return await this.#open(command);
      case "drop":
        this.#handles.get(command.handle)?.session?.close();
        this.#handles.delete(command.handle);
        return { result: OK };
      case "patch": {
        const memory = this.#memory(command.handle);
        for (const { offset, hex } of command.bytes) memory.set(fromHex(hex), offset);
        return { result: OK };
      }
      case "dump": {
        const memory = this.#memory(command.handle);
        const { from = 0, size = memory.length - from } = command;
        return { result: { hex: packHex(memory.subarray(from, from + size)) } };
      }
      default:
        return await this.#call(command);
    }
  }

  async #open(command: Extract<Command, { command: "open" }>): Promise<Reply> {
    const { handle, carrier } = command;
    if (carrier === "stream") {
      if (this.#adapter.openStream === undefined) return { decline: "no streams" };
      const session = await this.#adapter.openStream(command, command);
      this.#handles.set(handle, { memory: undefined, session });
      return { result: OK };
    }
    if (carrier === "file") {
      if (this.#adapter.openFile === undefined) return { decline: "no files" };
      const session = this.#adapter.openFile(command.path, command);
      this.#handles.set(handle, { memory: undefined, session });
      return { result: OK };
    }
    const memory = carrier === "bytes"
      ? makeMemory(command)
      : carrier === "shared"
      ? this.#shared.get(command.name)
      : this.#adapter.mapFile?.(command.path);
    if (memory === undefined && carrier === "mapped") return { decline: "no files" };
    if (memory === undefined) throw new Error(`there is no memory ${JSON.stringify(command)}`);
    const entry: Handle = { memory, session: undefined };
    this.#handles.set(handle, entry); // whatever comes of it: the kit looks at the memory
    entry.session = this.#adapter.open(memory, command);
    return { result: OK };
  }

  async #call(command: Command): Promise<Reply> {
    if (!("handle" in command)) return { decline: "unknown command" };
    const opened = this.#handles.get(command.handle)?.session;
    const { client } = command as { client?: number };
    const session = client === undefined ? opened : opened?.client?.(client);
    switch (command.command) {
      case "read":
        return reply(await this.#read(session, command));
      case "peek":
        return reply(session?.peek?.());
      case "write":
        return isDone(await session?.write?.(command.message, command.timeout_ms, command.wait));
      case "claim": {
        const { message, size, abandon, open } = command;
        const isClaimed = session?.claim?.(message, size);
        if (!isClaimed || open) return isDone(isClaimed);
        if (abandon) session!.abandon!();
        else session!.finish!(message);
        return isDone(true);
      }
      case "finish":
        return isDone(session?.finish && (session.finish(command.message), true));
      case "resume":
        return isDone(session?.resume && (session.resume(command.timeout_ms), true));
      case "release":
      case "abandon":
      case "publish":
      case "end":
      case "vacate":
      case "clear":
      case "leave":
      case "join":
      case "close":
        return isDone(session?.[command.command] && (session[command.command]!(), true));
      case "get":
        return reply(session?.get?.());
      case "changed":
        return isDone(session?.changed && (session.changed(command.timeout_ms), true));
      case "run":
        return reply(await run(session, command.task, command.timeout_ms));
      default:
        return await this.#dial(command, session?.calls);
    }
  }

  async #dial(command: Command, calls: Calling | undefined): Promise<Reply> {
    switch (command.command) {
      case "call": {
        const { name, values, items, timeout_ms, wait } = command;
        if (timeout_ms !== undefined) {
          return reply(await calls?.ask(name, values, timeout_ms, wait));
        }
        return isDone(calls && (await calls.call(name, values, items), true));
      }
      case "notify":
        return isDone(calls && (await calls.notify(command.name, command.values), true));
      case "give_up":
        return isDone(calls && (await calls.giveUp(command.call), true));
      case "outcome":
      case "item":
        return reply(await calls?.[command.command](command.call));
      case "told":
        return reply(calls && { count: calls.told() });
      default:
        return { decline: "unknown command" };
    }
  }

  /** Reads once, or as often as is asked for, as long as something comes. */
  async #read(
    session: Session | undefined,
    { timeout_ms, wait, count }: Extract<Command, { command: "read" }>,
  ): Promise<Taken | TakenMany | undefined> {
    if (session?.read === undefined || count === undefined) {
      return await session?.read?.(timeout_ms, wait);
    }
    const items: TakenMany["items"] = [];
    while (items.length < count) {
      try {
        const taken = await session.read(timeout_ms, wait);
        if ("end" in taken) return { items, end: taken.end };
        items.push(taken.item);
      } catch (error) {
        const failure = this.#adapter.failureOf(error);
        if (failure === undefined || failure === "refused") throw error;
        const { code, reason, count } = failure;
        if (!/^(?:message|call)\./.test(code)) {
          return { items, end: code, ...(reason && { reason }) };
        }
        items.push({ report: code, ...(count !== undefined && { count }) });
      }
    }
    return { items };
  }

  #memory(handle: number): Uint8Array {
    const memory = this.#handles.get(handle)?.memory;
    if (memory === undefined) throw new Error(`handle ${handle} has no memory of its own`);
    return memory;
  }
}

function run(session: Session | undefined, task: Task | TreeTask, timeoutMs: number) {
  return task.role === "tree"
    ? session?.calls?.run(task, timeoutMs)
    : session?.run?.(task, timeoutMs);
}

function makeMemory({ memory, memory_offset = 0 }: Place & { carrier: "bytes" }): Uint8Array {
  const shared = new SharedArrayBuffer(memory_offset + memory.size);
  const bytes = new Uint8Array(shared, memory_offset, memory.size);
  for (const { offset, hex } of memory.bytes) bytes.set(fromHex(hex), offset);
  return bytes;
}

function reply(result: object | undefined): Reply {
  return result === undefined ? { decline: "not for this role" } : { result };
}

function isDone(result: boolean | undefined): Reply {
  if (result === undefined) return { decline: "not for this role" };
  return { result: result ? OK : { outcome: "full" } };
}

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes in hexadecimal, nothing between them. */
export function packHex(bytes: Uint8Array): string {
  let text = "";
  for (let index = 0; index < bytes.length; index++) text += DIGITS[bytes[index]!]!;
  return text;
}

/** Speaks on standard input and output until the input ends. */
export async function serveLines(adapter: Adapter): Promise<void> {
  const server = new Server(adapter);
  const encoder = new TextEncoder();
  for await (const line of lines(Deno.stdin.readable)) {
    const bytes = encoder.encode(JSON.stringify(await server.answer(JSON.parse(line))) + "\n");
    for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
  }
}

/** The lines of a stream, without their ends. */
export async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}
