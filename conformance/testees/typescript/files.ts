/**
 * Segments and mailboxes in files: what Deno alone offers of the implementation.
 *
 * @module
 */

import * as files from "../../../impl-ts/src/host/files.ts";
import { Mapping } from "../../../impl-ts/src/host/mapping.ts";
import { cbor } from "../../../impl-ts/src/codec/cbor.ts";
import { SegmentFile } from "../../../impl-ts/src/host/mod.ts";
import type { Geometry, Port } from "../../../impl-ts/src/mod.ts";
import { MailboxReader, MailboxWriter } from "../../../impl-ts/src/mailbox/mailbox.ts";
import type { Opening } from "../../kit/protocol.ts";
import type { Session } from "../server.ts";
import { codecOf, type Ends, failureOf, mailboxReader } from "./adapter.ts";
import { mailboxWriter, PipeSession } from "./adapter.ts";
import { fanoutEnd, fanouts, properties, propertyEnd } from "./many.ts";

/** Opens or makes the file at a path. */
export function openFile(path: string, opening: Opening): Session {
  const { role, spin_us: spin } = opening;
  if (role === "mailbox_reader" || role === "mailbox_writer") return openMailbox(path, opening);
  const options = { endpoint: opening.endpoint!, spin, timeout: opening.timeout_ms };
  const file = opening.kind === "create"
    ? SegmentFile.create(path, fanouts(properties(opening.geometry as Geometry)), options)
    : SegmentFile.open(path, options);
  if (/^(?:property|fanout)_/.test(role)) return useOf(file, opening);
  const ends = endsOf(file, opening);
  const session = new PipeSession(opening, ends);
  // It closes the end as well.
  session.close = () => file.close();
  return session;
}

/** An end of a property or a fanout, which closes with its file. */
function useOf(file: SegmentFile, opening: Opening): Session {
  const make = opening.role.startsWith("property") ? propertyEnd : fanoutEnd;
  try {
    const session = file.use((segment) => make(segment, opening, failureOf));
    const { close } = session;
    return { ...session, close: () => (close(), file.close()) };
  } catch (error) {
    file.close();
    throw error;
  }
}

function endsOf(file: SegmentFile, opening: Opening): Ends {
  const { role, channel, limit, calls, inbox } = opening;
  const codec = codecOf(opening);
  const reading = { maxMessageSize: limit, calls, codecs: [cbor] };
  if (role === "reader") return { reader: file.reader({ ...reading, channel }) };
  if (role === "writer") return { writer: file.writer<Uint8Array>({ channel, codec }) };
  return file.port<unknown, Uint8Array>({ ...reading, codec, inboxSize: inbox }) as Port as never;
}

/** The bytes of a file, which others may have mapped as well. */
export function mapFile(path: string): Uint8Array {
  const fd = files.openExisting(path);
  if (fd < 0) throw new Error(`cannot open ${path}: ${-fd}`);
  const { buffer } = new Mapping(fd, Deno.statSync(path).size);
  files.close(fd);
  return new Uint8Array(buffer);
}

/** A mailbox in a file is all of it. Nobody knows how the peer wakes, so both sides poll. */
function openMailbox(path: string, { role, limit, spin_us: spin }: Opening): Session {
  const { buffer } = mapFile(path);
  return role === "mailbox_reader"
    ? mailboxReader(MailboxReader.attach(buffer, { maxMessageSize: limit, spin }))
    : mailboxWriter(MailboxWriter.attach(buffer, { spin }));
}
