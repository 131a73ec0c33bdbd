/**
 * A testee at a connection, as the static cases need it.
 *
 * @module
 */

import { type Connection, patience } from "../kit/connection.ts";
import type { Bare, Command, Done, Opening, OpenRole, Outgoing, Reply } from "../kit/protocol.ts";
import type { Gotten, Ran, Taken, TakenMany, Task, Wait, Way } from "../kit/protocol.ts";
import { Trouble } from "../kit/verdict.ts";
import { fromHex, type Run, toHex } from "../reference/bytes.ts";
import type { Calling, Drained, Item, MessageCase, Payload } from "../reference/case.ts";
import type { Setting, Settled, Value } from "../reference/case.ts";
import { toBytes } from "./difference.ts";
import type { AfterClaim, Answer, Calls, Opened, PeerMemory, Read, Register } from "./driver.ts";
import type { Session, Testee } from "./driver.ts";

/** Long enough to sleep once, so that what holds before a sleep is seen. */
const WAIT_MS = 2;
/** The limit of a reader where a case states none. */
const LIMIT = 4096;

/** A testee that declined where it may not, or may and did. */
export class Declined extends Error {
  override readonly name = "Declined";
}

/** Makes a testee of the static cases. */
export function remoteTestee(connection: Connection): Testee {
  return {
    name: connection.hello.name,
    lacks: connection.hello.lacks,
    nouns: connection.hello.nouns,
    open: (setting, image) => openRemote(connection, setting, image),
  };
}

/** Opens memory of carrier `bytes` with an image in it. */
export async function openRemote(
  connection: Connection,
  setting: Setting,
  image: Uint8Array,
): Promise<Opened> {
  const handle = connection.newHandle();
  const { memory_offset } = setting;
  const reply = await connection.send({
    command: "open",
    handle,
    carrier: "bytes",
    memory: { size: image.length, bytes: packRuns(image) },
    ...(memory_offset !== undefined && { memory_offset }),
    ...openingOf(setting),
  });
  const memory = new RemoteMemory(connection, handle);
  const drop = async () => {
    await connection.must({ command: "drop", handle });
  };
  const result = answerOf(reply);
  if (typeof result !== "string") throw new Error(`opening gave ${JSON.stringify(result)}`);
  if (result !== "ok" || setting.role === "segment") return { result, memory, drop };
  return { result, memory, drop, session: new RemoteSession(connection, handle, setting.role) };
}

/** How to open what a case describes. */
export function openingOf(setting: Omit<Setting, "image">): Opening {
  const { kind, role, geometry, sole_owner, endpoint, channel, limit = LIMIT } = setting;
  const { calls, first_id, property, oldest } = setting;
  return {
    kind: kind === "create" ? "create" : "attach",
    role,
    ...(geometry !== undefined && { geometry }),
    ...(sole_owner !== undefined && { sole_owner }),
    ...(endpoint !== undefined && { endpoint }),
    ...(channel !== undefined && { channel }),
    limit,
    calls: calls ?? kind === "call",
    values: kind === "decode" || kind === "call",
    ...(kind === "call" && { serves: true }),
    ...(first_id !== undefined && { first_id }),
    ...(property !== undefined && { property }),
    ...(oldest !== undefined && { oldest }),
  };
}

/** The memory of a handle of carrier `bytes`. */
export class RemoteMemory implements PeerMemory {
  readonly #connection: Connection;
  readonly #handle: number;

  constructor(connection: Connection, handle: number) {
    this.#connection = connection;
    this.#handle = handle;
  }

  async dump(from?: number, size?: number): Promise<Uint8Array> {
    const handle = this.#handle;
    const range = { ...(from !== undefined && { from }), ...(size !== undefined && { size }) };
    const { hex } = await this.#connection.must<{ hex: string }>({
      command: "dump",
      handle,
      ...range,
    });
    const bytes = new Uint8Array(hex.length / 2);
    for (let index = 0; index < bytes.length; index++) {
      bytes[index] = parseInt(hex.slice(2 * index, 2 * index + 2), 16);
    }
    return bytes;
  }

  async patch(runs: Run[]): Promise<void> {
    const bytes = runs.map(({ offset, hex }) => ({ offset, hex: hex.replaceAll(" ", "") }));
    await this.#connection.must({ command: "patch", handle: this.#handle, bytes });
  }
}

/** What was opened under a handle, whatever the carrier; of a hub, the port to one client. */
export class RemoteSession implements Session {
  readonly #connection: Connection;
  readonly #handle: number;
  readonly #role: OpenRole;
  readonly #client: { client?: number };

  constructor(connection: Connection, handle: number, role: OpenRole, client?: number) {
    this.#connection = connection;
    this.#handle = handle;
    this.#role = role;
    this.#client = client === undefined ? {} : { client };
  }

  read(timeout_ms: number = WAIT_MS, wait?: Wait): Promise<Read> {
    return kept(this.#send({ command: "read", ...this.#way(wait), timeout_ms }).then(readOf));
  }

  /** Reads so many times, fewer where a call gives neither a message nor the report of one. */
  async readMany(count: number, timeout_ms: number, wait?: Wait): Promise<Drained> {
    if (this.#connection.hello.offers?.includes("read_many")) {
      const command = { command: "read", ...this.#way(wait), timeout_ms, count } as const;
      return manyOf(await this.#send(command, count * timeout_ms));
    }
    const items: Item[] = [];
    while (items.length < count) {
      const got = await this.read(timeout_ms, wait);
      if ("end" in got) return { items, ...got };
      items.push(got.item);
    }
    return { items };
  }

  async peek(): Promise<Read> {
    return readOf(await this.#send({ command: "peek", ...this.#way() }));
  }

  release(): Promise<Answer> {
    return this.#do("release");
  }

  write(
    payload: Payload,
    wait: boolean,
    waitMs: number = WAIT_MS,
    way?: Wait,
  ): Promise<Answer> {
    const message = toOutgoing(payload);
    const timeout = wait || this.#role === "mailbox_writer" ? { timeout_ms: waitMs } : {};
    const command = { command: "write", ...this.#way(way), message, ...timeout } as const;
    return kept(this.#send(command).then(answerOf));
  }

  async claim(payload: Payload, size: number, then: AfterClaim): Promise<Answer> {
    const message = toOutgoing(payload);
    const abandon = then === "abandon";
    const open = then === "open" ? { open: true } as const : {};
    const rest = { message, size, abandon, ...open };
    return answerOf(await this.#send({ command: "claim", ...this.#way(), ...rest }));
  }

  async finish(payload: Payload): Promise<Answer> {
    const message = toOutgoing(payload);
    return answerOf(await this.#send({ command: "finish", ...this.#way(), message }));
  }

  abandon(): Promise<Answer> {
    return this.#do("abandon");
  }

  async resume(): Promise<Answer> {
    const command = { command: "resume", handle: this.#handle, timeout_ms: WAIT_MS } as const;
    return answerOf(await this.#send(command));
  }

  /** Has a task done. */
  async run(task: Task, timeout_ms: number): Promise<Ran> {
    const reply = await this.#send({ command: "run", handle: this.#handle, task, timeout_ms });
    if ("result" in reply) return reply.result as Ran;
    if ("decline" in reply) throw new Declined(reply.decline);
    throw new Trouble("error", `a task fails with ${reply.error.code}`);
  }

  publish(): Promise<Answer> {
    return this.#do("publish");
  }

  end(): Promise<Answer> {
    return this.#do("end");
  }

  close(): Promise<Answer> {
    return this.#do("close");
  }

  vacate(): Promise<Answer> {
    return this.#do("vacate");
  }

  leave(): Promise<Answer> {
    return this.#do("leave");
  }

  join(): Promise<Answer> {
    return this.#do("join");
  }

  /** The calls of a port that was opened to make them. */
  readonly calls: Calls = {
    call: async (calling, items) =>
      answerOf(await this.#send({ command: "call", ...this.#way(), ...toCall(calling), items })),
    notify: async (calling) =>
      answerOf(await this.#send({ command: "notify", ...this.#way(), ...toCall(calling) })),
    giveUp: async (call) =>
      answerOf(await this.#send({ command: "give_up", ...this.#way(), call })),
    settled: async (call, item) => {
      const command = item ? "item" : "outcome";
      const reply = await this.#send({ command, ...this.#way(), call });
      if ("decline" in reply) throw new Declined(reply.decline);
      return "result" in reply ? reply.result as Settled : { outcome: reply.error.code };
    },
  };

  /** What an end of a property does beside writing. */
  readonly register: Register = {
    get: async () => gottenOf(await this.#send({ command: "get", handle: this.#handle })),
    clear: () => this.#do("clear"),
    changed: (timeout_ms = WAIT_MS) => {
      const command = { command: "changed", handle: this.#handle, timeout_ms } as const;
      return kept(this.#send(command).then(answerOf));
    },
  };

  /** Makes a call, and has the testee wait for its answer: what has come of it. */
  async ask({ name, values }: Calling, timeout_ms: number, wait?: Wait): Promise<Settled> {
    const made = { ...toCall({ name, values }), items: false, timeout_ms };
    const reply = await this.#send({ command: "call", ...this.#way(wait), ...made });
    if ("decline" in reply) throw new Declined(reply.decline);
    return "result" in reply ? reply.result as Settled : { outcome: reply.error.code };
  }

  /** How many calls of `hold` the testee was told to give up. */
  async told(): Promise<number> {
    const reply = await this.#send({ command: "told", ...this.#way() });
    if ("decline" in reply) throw new Declined(reply.decline);
    if ("result" in reply) return (reply.result as { count: number }).count;
    throw new Trouble("error", `told fails with ${reply.error.code}`);
  }

  async #do(command: Bare): Promise<Answer> {
    return answerOf(await this.#send({ command, ...this.#way() }));
  }

  #way(wait?: Wait): { handle: number } & Way {
    return { handle: this.#handle, ...this.#client, ...(wait !== undefined && { wait }) };
  }

  #send(command: Command, moreMs = 0): Promise<Reply> {
    // A call that waits for longer than usual may also be late for longer.
    const waits = "timeout_ms" in command ? command.timeout_ms ?? 0 : 0;
    return this.#connection.send(command, patience.replyMs + waits + moreMs);
  }
}

/** A script may fail while a call is under way: its own failure is then not worth telling. */
function kept<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** What a call gave that reads nothing. */
export function answerOf(reply: Reply): Answer {
  if ("decline" in reply) throw new Declined(reply.decline);
  if ("result" in reply) return (reply.result as Done).outcome;
  const { code, reason } = reply.error;
  return reason === undefined ? code : { code, reason };
}

function readOf(reply: Reply): Read {
  if ("decline" in reply) throw new Declined(reply.decline);
  if ("error" in reply) {
    const { code, reason, count } = reply.error;
    if (/^(?:message|call)\./.test(code)) {
      return { item: { report: code, ...(count !== undefined && { count }) } };
    }
    return reason === undefined ? { end: code } : { end: code, reason };
  }
  const taken = reply.result as Taken | Done;
  if ("outcome" in taken) return { end: taken.outcome }; // only `refused` comes of a read
  return "end" in taken ? taken : { item: spread(taken.item) };
}

function manyOf(reply: Reply): Drained {
  if ("decline" in reply) throw new Declined(reply.decline);
  if ("error" in reply) return { items: [], end: reply.error.code };
  const taken = reply.result as TakenMany | Done;
  if ("outcome" in taken) return { items: [], end: taken.outcome }; // only `refused`, as of a read
  const { items, ...end } = taken;
  return { items: items.map((item) => "report" in item ? item : spread(item)), ...end };
}

/** The value of a property as the one item, and its version. */
function gottenOf(reply: Reply): Drained | Answer {
  if (!("result" in reply) || "outcome" in reply.result) return answerOf(reply);
  const { version, item } = reply.result as Gotten;
  return { items: item === undefined ? [] : [spread(item)], version };
}

/** Hexadecimal as the cases have it. */
function spread(item: MessageCase): Item {
  return item.hex === undefined ? item : { ...item, hex: toHex(fromHex(item.hex)) };
}

/** A call without spaces in its bytes. */
function toCall({ name, values }: Calling): { name: string; values: Value[] } {
  const packed = values.map((value) =>
    "hex" in value ? { ...value, hex: value.hex!.replaceAll(" ", "") } : value
  );
  return { name, values: packed };
}

function toOutgoing(payload: Payload): Outgoing {
  const { kind = 1, codec = 0, tag = 0, json } = payload;
  const hex = toHex(toBytes(payload)).replaceAll(" ", "");
  if (json !== undefined && !Array.isArray(json)) {
    throw new Trouble("error", "no array of messages");
  }
  return { kind, codec, tag, hex, ...(json !== undefined && { json }) };
}

/** What in the memory is not 0, without spaces in it. */
export function packRuns(image: Uint8Array): Run[] {
  const runs: Run[] = [];
  for (let offset = 0; offset < image.length; offset += 64) {
    const line = image.subarray(offset, offset + 64);
    const size = line.findLastIndex((byte) => byte !== 0) + 1;
    if (size === 0) continue;
    runs.push({ offset, hex: toHex(line.subarray(0, size)).replaceAll(" ", "") });
  }
  return runs;
}
