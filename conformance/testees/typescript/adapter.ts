/**
 * The TypeScript implementation as a testee, through its public interface.
 *
 * @module
 */

import {
  type Geometry,
  type Mechanism,
  type Message,
  MillraceError,
  Port,
  Reader,
  Segment,
  TimeoutError,
  Writer,
} from "../../../impl-ts/src/mod.ts";
import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { LostError } from "../../../impl-ts/src/fanout/fanout.ts";
import { Hub } from "../../../impl-ts/src/more/hub.ts";
import { MailboxReader, MailboxWriter } from "../../../impl-ts/src/mailbox/mailbox.ts";
import {
  abandon,
  finish,
  publish,
  release,
  tryClaim,
  tryPeek,
} from "../../../impl-ts/src/more/lend.ts";
import {
  lastRead,
  readInto,
  readMessage as readRaw,
  readMessageAsync,
  tryReadInto,
  tryWriteMessage,
  writeMessage,
} from "../../../impl-ts/src/more/raw.ts";
import { revive } from "../../../impl-ts/src/more/revive.ts";
import { fanoutEnd, fanouts, properties, propertyEnd } from "./many.ts";
import type { Failed, Hello, Opening, Outgoing, Taken, Wait } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { MessageCase } from "../../reference/case.ts";
import { type Adapter, packHex, type Session } from "../server.ts";
import { Calls } from "./calls.ts";
import { runMailbox, runPipe } from "./tasks.ts";

const TEXT = 1;
const CBOR = 5;
/** Where a message goes whose size nobody has limited. */
const SIZE_MAX = 1 << 20;

const hello: Hello = {
  protocol: 1,
  name: "Millrace for TypeScript",
  version: "0.2.0",
  language: "TypeScript",
  levels: ["static", "scripted", "live", "mailbox"],
  nouns: [
    "segment",
    "wait",
    "frame",
    "ring",
    "mailbox",
    "codec",
    "pipe",
    "port",
    "call",
    "property",
    "fanout",
  ],
  carriers: ["bytes", "shared"],
  waits: ["block", "poll", "event"],
  // A pipe takes the endpoint that its ring states.
  lacks: ["endpoint"],
  offers: ["read_many", "ways", "inbox", "lossy", "close_ms", "cross", "hub", "encodes", "mixed"],
};

/** The implementation on memory that is handed over. */
export const typescript: Adapter = { hello, open, failureOf };

/** Opens an end in memory, with the mechanism that suits it or another one. */
export function open(
  memory: Uint8Array,
  opening: Opening,
  mechanism?: Mechanism,
): Session | undefined {
  const { role, kind, channel, endpoint, limit, calls, spin_us: spin, inbox } = opening;
  if (kind === "create") {
    const geometry = fanouts(properties(opening.geometry as Geometry));
    if (opening.sole_owner) Segment.format(memory, geometry);
    else Segment.create(memory, geometry, { timeout: 0 });
  }
  const options = { maxMessageSize: limit, calls, spin, mechanism, codecs: [cbor] };
  switch (role) {
    case "port": {
      const order = { ...options, codec: codecOf(opening), inboxSize: inbox, timeout: 0 };
      const attach = { ...order, endpoint: endpoint ?? 1 };
      const port = Port.attach<Uint8Array>(memory, attach);
      return new PipeSession(opening, port as never);
    }
    case "hub": {
      const order = { ...options, codec: "bytes", inboxSize: inbox, timeout: 0 } as const;
      const hub = Hub.attach<Uint8Array>(memory, order);
      const ports = hub.ports.map((port) => new PipeSession(opening, port as never));
      return { client: (index) => ports[index], close: () => hub.close() };
    }
    case "mailbox_reader":
      return mailboxReader(MailboxReader.attach(memory, options));
    case "mailbox_writer":
      return mailboxWriter(MailboxWriter.attach(memory, { spin, mechanism }));
  }
  const segment = Segment.attach(memory, { timeout: 0 });
  if (role === "segment") return undefined;
  if (role.startsWith("property")) return propertyEnd(segment, opening, failureOf, mechanism);
  if (role.startsWith("fanout")) return fanoutEnd(segment, opening, failureOf, mechanism);
  if (role === "reader") {
    return new PipeSession(opening, { reader: Reader.attach(segment, { ...options, channel }) });
  }
  const writer = Writer.attach<Uint8Array>(segment, {
    channel,
    spin,
    mechanism,
    codec: codecOf(opening),
  });
  return new PipeSession(opening, { writer });
}

/** How the values are encoded that are written. */
export function codecOf({ encodes, mixed }: Opening): "bytes" | "json" | typeof cbor {
  return encodes ? cbor : mixed ? "json" : "bytes";
}

/** The calls of a port that is to offer them. */
function callsOf(
  port: Port,
  opening: Opening,
  wait?: Wait,
  before?: Calls,
): Calls | undefined {
  return opening.serves ? new Calls(port, opening, wait, before) : undefined;
}

/** One or both directions between two endpoints. A port, which is both, counts as one. */
export interface Ends {
  reader?: Reader;
  writer?: Writer<Uint8Array>;
}

/** What can be done with one or both directions; the kit asks for nothing that is not there. */
export class PipeSession implements Session {
  readonly #opening: Opening;
  #ends: Ends | Port;
  #reader!: Reader;
  #writer!: Writer<Uint8Array>;
  /** What is claimed. */
  #place: Uint8Array | undefined;
  calls: Calls | undefined;

  /** `wait` says how the methods of its calls wait that call back. */
  constructor(opening: Opening, ends: Ends | Port, readonly wait?: Wait) {
    this.#opening = opening;
    this.#ends = ends;
    this.#take(ends);
  }

  /** Works with these ends from now on. A port is both. */
  #take(ends: Ends | Port): void {
    this.#ends = ends;
    this.#reader = (ends instanceof Port ? ends : ends.reader) as unknown as Reader;
    this.#writer = (ends instanceof Port ? ends : ends.writer) as unknown as Writer<Uint8Array>;
    this.calls = ends instanceof Port
      ? callsOf(ends, this.#opening, this.wait, this.calls)
      : undefined;
  }

  read(timeout: number, wait?: Wait): Taken | Promise<Taken> {
    const { values, limit } = this.#opening;
    const from = this.#ends instanceof Port ? this.#ends : this.#reader;
    const item = values
      ? readValue(from, timeout, wait)
      : readMessage(this.#reader, timeout, wait, limit);
    return item instanceof Promise ? item.then((found) => this.#taken(found)) : this.#taken(item);
  }

  #taken(item: MessageCase | undefined): Taken {
    if (item !== undefined) return { item };
    return { end: this.#reader.ended ? "ended" : "nothing" };
  }

  peek(): Taken {
    const lent = tryPeek(this.#reader);
    if (lent === undefined) return { end: this.#reader.ended ? "ended" : "nothing" };
    const { kind, codec, tag, payload } = lent;
    return { item: { kind, codec, tag, hex: packHex(payload) } };
  }

  release(): void {
    release(this.#reader);
  }

  write(
    { kind, codec, tag, hex }: Outgoing,
    timeout: number | undefined,
    wait?: Wait,
  ): boolean | Promise<boolean> {
    const payload = fromHex(hex);
    const isValue = this.#opening.encodes && codec === CBOR;
    const value = isValue ? cbor.decode(payload) : payload;
    if (wait === "event") return this.#writer.writeAsync(value, { timeout }).then(() => true);
    if (isValue) {
      if (timeout === undefined || wait === "poll") return this.#writer.tryWrite(value);
      this.#writer.write(value, { timeout });
      return true;
    }
    const message = { kind, codec, tag, payload };
    if (timeout === undefined || wait === "poll") return tryWriteMessage(this.#writer, message);
    writeMessage(this.#writer, message, { timeout });
    return true;
  }

  claim({ codec, tag }: Outgoing, size: number): boolean {
    const place = tryClaim(this.#writer, size, { codec, tag });
    if (place === undefined) return false;
    this.#place = place.payload;
    return true;
  }

  finish({ hex }: Outgoing): void {
    const payload = fromHex(hex);
    this.#place?.set(payload);
    this.#place = undefined;
    finish(this.#writer, payload.length);
  }

  abandon(): void {
    this.#place = undefined;
    abandon(this.#writer);
  }

  publish(): void {
    publish(this.#writer);
  }

  end(): void {
    this.#writer.end();
  }

  vacate(): void {
    this.#place = undefined;
    const ends = this.#ends;
    if (ends instanceof Port) this.#take(revive(ends));
    else if (ends.reader !== undefined) this.#take({ reader: revive(ends.reader) });
    else this.#take({ writer: revive(ends.writer!) });
  }

  run(...[task, timeout]: Parameters<NonNullable<Session["run"]>>) {
    return runPipe(this.#ends as Ends, task, timeout, failureOf, this.#opening.values);
  }

  close(): void {
    (this.#reader ?? this.#writer).close();
  }
}

/** The reading side of a mailbox. */
export function mailboxReader(reader: MailboxReader): Session {
  return {
    read(timeout) {
      const json = reader.read({ timeout });
      return json === undefined
        ? { end: "nothing" }
        : { item: { kind: 1, codec: 2, tag: 0, json } };
    },
    run: (task, timeout) => runMailbox({ reader }, task, timeout, failureOf),
    close: () => reader.close(),
  };
}

/** The writing side of one. */
export function mailboxWriter(writer: MailboxWriter): Session {
  return {
    write({ json }, timeout) {
      writer.writeMany(json!, { timeout });
      return true;
    },
    resume: (timeout) => writer.writeMany([], { timeout }),
    run: (task, timeout) => runMailbox({ writer }, task, timeout, failureOf),
    close: () => writer.close(),
  };
}

/** A message as it is, by whichever call waits in that way; where none is named, by the first. */
function readMessage(
  reader: Reader,
  timeout: number,
  wait: Wait | undefined,
  limit = SIZE_MAX,
): MessageCase | undefined | Promise<MessageCase | undefined> {
  if (wait === undefined) return itemOf(readRaw(reader, { timeout }));
  if (wait === "event") return readMessageAsync(reader, { timeout }).then(itemOf);
  const target = new Uint8Array(limit);
  const size = wait === "block"
    ? readInto(reader, target, { timeout })
    : tryReadInto(reader, target);
  if (size === undefined) return undefined;
  const { kind, codec, tag } = lastRead(reader);
  return { kind, codec, tag, hex: packHex(target.subarray(0, size)) };
}

/** A value as it is decoded, in the same way; on an event loop, a port hands it out by events. */
function readValue(
  from: Reader | Port<unknown, Uint8Array>,
  timeout: number,
  wait: Wait | undefined,
): MessageCase | undefined | Promise<MessageCase | undefined> {
  const item = (value: unknown): MessageCase | undefined => {
    if (value === undefined) return undefined;
    const { kind, codec, tag } = lastRead(from);
    if (codec === CBOR) return { kind, codec, tag, hex: packHex(cbor.encode(value)) };
    if (value instanceof Uint8Array) return { kind, codec, tag, hex: packHex(value) };
    if (codec === TEXT) return { kind, codec, tag, text: value as string };
    return { kind, codec, tag, json: value };
  };
  if (wait === "poll") return item(from.tryRead());
  if (wait !== "event") return item(from.read({ timeout }));
  return from instanceof Port
    ? nextEvent(from, timeout).then(item)
    : from.readAsync({ timeout }).then(item);
}

/** The value of the next event; where none comes, whatever a call gives that does not wait. */
async function nextEvent(port: Port<unknown, Uint8Array>, timeout: number): Promise<unknown> {
  // Its end was an event once.
  if (port.ended) return port.tryRead();
  const heard = Promise.withResolvers<unknown>();
  const none = Symbol("none");
  const ends = new AbortController();
  // At once: another event may come in the same turn, and belongs to the next read.
  const first = <E>(act: (event: E) => void) => (event: E) => (ends.abort(), act(event));
  const { signal } = ends;
  port.addEventListener("message", first(({ data }) => heard.resolve(data)), { signal });
  port.addEventListener("messageerror", first(({ data }) => heard.reject(data)), { signal });
  port.addEventListener("close", first(() => heard.resolve(none)), { signal });
  const timer = setTimeout(() => heard.resolve(none), timeout);
  const value = await heard.promise.finally(() => {
    clearTimeout(timer);
    ends.abort();
  });
  return value === none ? port.tryRead() : value;
}

function itemOf(message: Message | undefined): MessageCase | undefined {
  if (message === undefined) return undefined;
  const { kind, codec, tag, payload } = message;
  return { kind, codec, tag, hex: packHex(payload) };
}

/** What an error says. */
export function failureOf(error: unknown): Failed | "refused" | undefined {
  // What the caller must not ask for. A TypeError of the engine is a fault of the testee.
  const isRefused = error instanceof RangeError ||
    error instanceof TypeError && /^Cannot [\w ]+: /.test(error.message);
  if (isRefused) return "refused";
  if (error instanceof TimeoutError) return { code: "wait.timeout" };
  if (!(error instanceof MillraceError)) return undefined;
  const { code, message } = error;
  if (error instanceof LostError) return { code, count: error.count, message };
  const hasReason = code === "peer.failed" || code === "pipe.failed";
  return hasReason ? { code, reason: error.reason ?? "none", message } : { code, message };
}
