/**
 * The TypeScript implementation as a testee of the static cases, through its public interface.
 *
 * @module
 */

import {
  ClosedError,
  type Geometry,
  MailboxReader,
  MailboxWriter,
  MessageError,
  MillraceError,
  PeerFailedError,
  Port,
  Reader,
  Segment,
  TimeoutError,
  Writer,
} from "../../impl-ts/src/mod.ts";
import { toHex } from "../reference/bytes.ts";
import type { MessageCase, Reason, Setting } from "../reference/case.ts";
import type { Answer, Opened, Read, Session, Testee } from "./driver.ts";

/** Long enough to sleep once, so that what holds before a sleep is seen. */
const WAIT_MS = 2;
const TEXT = 1;

export const typescript: Testee = {
  name: "TypeScript",
  // A pipe takes the endpoint that its ring states.
  lacks: ["endpoint"],
  open(setting, image) {
    const memory = new SharedArrayBuffer((setting.memory_offset ?? 0) + image.length);
    const bytes = new Uint8Array(memory, setting.memory_offset ?? 0, image.length);
    bytes.set(image);
    try {
      return { memory: bytes, result: "ok", ...open(setting, bytes) };
    } catch (error) {
      return { memory: bytes, result: codeOf(error) };
    }
  },
};

function open(setting: Setting, bytes: Uint8Array): Partial<Opened> {
  const { role, channel, limit = 4096, calls } = setting;
  if (setting.kind === "create") {
    const geometry = setting.geometry as Geometry;
    if (setting.sole_owner) Segment.format(bytes, geometry);
    else Segment.create(bytes, geometry, { timeout: 0 });
    return {};
  }
  const options = { maxMessageSize: limit, calls };
  if (role === "port") {
    const port = Port.attach(bytes, { ...options, endpoint: setting.endpoint ?? 1, timeout: 0 });
    return { session: session(port.reader, port.writer, setting) };
  }
  if (role === "mailbox_reader") {
    return { session: mailboxReader(MailboxReader.attach(bytes, { maxMessageSize: limit })) };
  }
  if (role === "mailbox_writer") {
    return { session: mailboxWriter(MailboxWriter.attach(bytes)) };
  }
  const segment = Segment.attach(bytes, { timeout: 0 });
  if (role === "reader") {
    const reader = Reader.attach(segment, { ...options, channel });
    return { session: session(reader, undefined, setting) };
  }
  if (role === "writer") {
    return { session: session(undefined, Writer.attach(segment, { channel }), setting) };
  }
  return {};
}

function session(
  reader: Reader | undefined,
  writer: Writer | undefined,
  { kind }: Setting,
): Session {
  return {
    read() {
      try {
        const taken = kind === "decode" ? readValue(reader!) : readMessage(reader!);
        if (taken !== undefined) return { item: taken };
        return { end: reader!.ended ? "ended" : "nothing" };
      } catch (error) {
        return notRead(error);
      }
    },
    peek() {
      try {
        const lent = reader!.tryPeek();
        if (lent === undefined) return { end: reader!.ended ? "ended" : "nothing" };
        const { kind, codec, tag, payload } = lent;
        return { item: { kind, codec, tag, hex: toHex(payload) } };
      } catch (error) {
        return notRead(error);
      }
    },
    release: () => attempt(() => reader!.release()),
    write(payload, { kind, codec, tag }, wait) {
      const message = { kind, codec, tag, payload };
      return attempt(() => {
        if (!wait) return writer!.tryWriteMessage(message);
        writer!.writeMessage(message, { timeout: WAIT_MS });
        return true;
      });
    },
    claim(payload, { codec, tag }, size, abandon) {
      return attempt(() => {
        const place = writer!.tryClaim(size, { codec, tag });
        if (place === undefined) return false;
        place.payload.set(payload);
        if (abandon) writer!.abandon();
        else writer!.finish(payload.length);
        return true;
      });
    },
    resume: impossible,
    publish: () => attempt(() => writer!.publish()),
    end: () => attempt(() => writer!.end()),
    close: () => attempt(() => (reader ?? writer)!.close()),
  };
}

function mailboxReader(reader: MailboxReader): Session {
  return {
    read() {
      try {
        const json = reader.read({ timeout: WAIT_MS });
        return json === undefined ? { end: "nothing" } : { item: toJson(json) };
      } catch (error) {
        return notRead(error);
      }
    },
    peek: impossible,
    release: impossible,
    write: impossible,
    claim: impossible,
    resume: impossible,
    publish: impossible,
    end: impossible,
    close: () => attempt(() => reader.close()),
  };
}

function mailboxWriter(writer: MailboxWriter): Session {
  return {
    read: impossible,
    peek: impossible,
    release: impossible,
    write: (payload) =>
      attempt(() => {
        const values = JSON.parse(new TextDecoder().decode(payload));
        writer.writeMany(values, { timeout: WAIT_MS });
      }),
    claim: impossible,
    resume: () => attempt(() => writer.writeMany([], { timeout: WAIT_MS })),
    publish: impossible,
    end: impossible,
    close: () => attempt(() => writer.close()),
  };
}

function impossible(): never {
  throw new Error("the case asks for what its role cannot do");
}

function toJson(json: unknown): MessageCase {
  return { kind: 1, codec: 2, tag: 0, json };
}

function readMessage(reader: Reader): MessageCase | undefined {
  const message = reader.readMessage({ timeout: WAIT_MS });
  if (message === undefined) return undefined;
  const { kind, codec, tag, payload } = message;
  return { kind, codec, tag, hex: toHex(payload) };
}

/** A value as the reader decodes it. */
function readValue(reader: Reader): MessageCase | undefined {
  const value = reader.read({ timeout: WAIT_MS });
  if (value === undefined) return undefined;
  const { kind, codec, tag } = reader;
  if (value instanceof Uint8Array) return { kind, codec, tag, hex: toHex(value) };
  if (codec === TEXT) return { kind, codec, tag, text: value as string };
  return { kind, codec, tag, json: value };
}

function attempt(call: () => boolean | void): Answer {
  try {
    return call() === false ? "full" : "ok";
  } catch (error) {
    if (error instanceof RangeError) return "refused";
    const code = codeOf(error);
    const reason = reasonOf(error);
    return reason === undefined ? code : { code, reason };
  }
}

function notRead(error: unknown): Read {
  const code = codeOf(error);
  if (error instanceof MessageError) return { item: { report: code } };
  const reason = reasonOf(error);
  return reason === undefined ? { end: code } : { end: code, reason };
}

/** What stands beside `pipe.failed` and `peer.failed`. */
function reasonOf(error: unknown): Reason | undefined {
  const mayHave = error instanceof PeerFailedError ||
    error instanceof ClosedError && error.code === "pipe.failed";
  return mayHave ? error.reason ?? "none" : undefined;
}

function codeOf(error: unknown): string {
  if (error instanceof TimeoutError) return "wait.timeout";
  // The caller's mistake would be the kit's own.
  if (!(error instanceof MillraceError)) throw error;
  return error.code;
}
