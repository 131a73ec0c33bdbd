/**
 * The TypeScript implementation as a testee, through its public interface.
 *
 * @module
 */

import {
  ClosedError,
  type Geometry,
  MailboxReader,
  MailboxWriter,
  type Mechanism,
  MillraceError,
  PeerFailedError,
  Port,
  Reader,
  Segment,
  TimeoutError,
  vacatePeer,
  Writer,
} from "../../../impl-ts/src/mod.ts";
import type { Failed, Hello, Opening, Outgoing, Taken } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { MessageCase } from "../../reference/case.ts";
import { type Adapter, packHex, type Session } from "../server.ts";
import { runMailbox, runPipe } from "./tasks.ts";

const TEXT = 1;

const hello: Hello = {
  protocol: 1,
  name: "Millrace for TypeScript",
  version: "0.1.0",
  language: "TypeScript",
  levels: ["static", "scripted", "live", "mailbox"],
  nouns: ["segment", "wait", "frame", "ring", "mailbox", "codec", "pipe", "port"],
  carriers: ["bytes", "shared"],
  waits: ["block", "poll", "event"],
  // A pipe takes the endpoint that its ring states.
  lacks: ["endpoint"],
};

/** The implementation on memory that is handed over. */
export const typescript: Adapter = { hello, open, failureOf };

/** Opens an end in memory, with the mechanism that suits it or another one. */
export function open(
  memory: Uint8Array,
  opening: Opening,
  mechanism?: Mechanism,
): Session | undefined {
  const { role, kind, channel, endpoint, limit, calls, spin_us: spin } = opening;
  if (kind === "create") {
    const geometry = opening.geometry as Geometry;
    if (opening.sole_owner) Segment.format(memory, geometry);
    else Segment.create(memory, geometry, { timeout: 0 });
  }
  const options = { maxMessageSize: limit, calls, spin, mechanism };
  switch (role) {
    case "port": {
      const order = { ...options, codec: "bytes", endpoint: endpoint ?? 1, timeout: 0 } as const;
      return new PipeSession(opening, Port.attach<Uint8Array>(memory, order));
    }
    case "mailbox_reader":
      return mailboxReader(MailboxReader.attach(memory, options));
    case "mailbox_writer":
      return mailboxWriter(MailboxWriter.attach(memory, { spin, mechanism }));
  }
  const segment = Segment.attach(memory, { timeout: 0 });
  if (role === "segment") return undefined;
  if (role === "reader") {
    return new PipeSession(opening, { reader: Reader.attach(segment, { ...options, channel }) });
  }
  const writer = Writer.attach<Uint8Array>(segment, {
    channel,
    spin,
    mechanism,
    codec: "bytes",
  });
  return new PipeSession(opening, { writer });
}

/** One or both directions between two endpoints. */
export interface Ends {
  reader?: Reader;
  writer?: Writer<Uint8Array>;
}

/** What can be done with one or both directions; the kit asks for nothing that is not there. */
export class PipeSession implements Session {
  readonly #opening: Opening;
  readonly #ends: Ends;
  readonly #reader: Reader;
  readonly #writer: Writer<Uint8Array>;
  /** What is claimed. */
  #place: Uint8Array | undefined;

  constructor(opening: Opening, ends: Ends) {
    this.#opening = opening;
    this.#ends = ends;
    this.#reader = ends.reader as Reader;
    this.#writer = ends.writer as Writer<Uint8Array>;
  }

  read(timeout: number): Taken {
    const reader = this.#reader;
    const { values } = this.#opening;
    const item = values ? readValue(reader, timeout) : readMessage(reader, timeout);
    return item === undefined ? { end: reader.ended ? "ended" : "nothing" } : { item };
  }

  peek(): Taken {
    const lent = this.#reader.tryPeek();
    if (lent === undefined) return { end: this.#reader.ended ? "ended" : "nothing" };
    const { kind, codec, tag, payload } = lent;
    return { item: { kind, codec, tag, hex: packHex(payload) } };
  }

  release(): void {
    this.#reader.release();
  }

  write({ kind, codec, tag, hex }: Outgoing, timeout: number | undefined): boolean {
    const message = { kind, codec, tag, payload: fromHex(hex) };
    if (timeout === undefined) return this.#writer.tryWriteMessage(message);
    this.#writer.writeMessage(message, { timeout });
    return true;
  }

  claim({ codec, tag }: Outgoing, size: number): boolean {
    const place = this.#writer.tryClaim(size, { codec, tag });
    if (place === undefined) return false;
    this.#place = place.payload;
    return true;
  }

  finish({ hex }: Outgoing): void {
    const payload = fromHex(hex);
    this.#place?.set(payload);
    this.#place = undefined;
    this.#writer.finish(payload.length);
  }

  abandon(): void {
    this.#place = undefined;
    this.#writer.abandon();
  }

  publish(): void {
    this.#writer.publish();
  }

  end(): void {
    this.#writer.end();
  }

  vacate(): void {
    this.#place = undefined;
    vacatePeer(this.#reader ?? this.#writer);
  }

  run(...[task, timeout]: Parameters<NonNullable<Session["run"]>>) {
    return runPipe(this.#ends, task, timeout, failureOf);
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

function readMessage(reader: Reader, timeout: number): MessageCase | undefined {
  const message = reader.readMessage({ timeout });
  if (message === undefined) return undefined;
  const { kind, codec, tag, payload } = message;
  return { kind, codec, tag, hex: packHex(payload) };
}

/** A value as the reader decodes it. */
function readValue(reader: Reader, timeout: number): MessageCase | undefined {
  const value = reader.read({ timeout });
  if (value === undefined) return undefined;
  const { kind, codec, tag } = reader;
  if (value instanceof Uint8Array) return { kind, codec, tag, hex: packHex(value) };
  if (codec === TEXT) return { kind, codec, tag, text: value as string };
  return { kind, codec, tag, json: value };
}

function failureOf(error: unknown): Failed | "refused" | undefined {
  // What the caller must not ask for. A TypeError of the engine is a fault of the testee.
  const isRefused = error instanceof RangeError ||
    error instanceof TypeError && /^Cannot [\w ]+: /.test(error.message);
  if (isRefused) return "refused";
  if (error instanceof TimeoutError) return { code: "wait.timeout" };
  if (!(error instanceof MillraceError)) return undefined;
  const { code, message } = error;
  const hasReason = error instanceof PeerFailedError ||
    error instanceof ClosedError && code === "pipe.failed";
  return hasReason ? { code, reason: error.reason ?? "none", message } : { code, message };
}
