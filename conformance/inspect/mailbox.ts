/**
 * A mailbox: its words with the checks of `spec/mailbox.md`, and the part under way.
 *
 * @module
 */

import { get } from "../reference/decode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "../reference/layout.ts";
import type { Findings, Mailbox } from "./inspection.ts";
import { nameOf, toCount, toPlural } from "./names.ts";
import { toPayload, undecodable } from "./payload.ts";

const HEADER = "mailbox_header";
const AREA = sizeOf(HEADER);
const BATCH = valueOf("codec", "json_batch");

/** Reads everything that can be read, whatever is wrong with it. */
export function lookAtMailbox(bytes: Uint8Array, findings: Findings): Mailbox {
  const load = (field: string): number | null => {
    const { offset, size } = fieldOf(HEADER, field);
    return offset + size > bytes.length ? null : get(bytes, 0, HEADER, field);
  };
  const name = (group: string, value: number | null) =>
    value === null ? "" : nameOf(group, value) ?? "unknown";
  const status = load("status");
  const signal = load("signal");
  const mailbox: Mailbox = {
    status,
    status_name: name("mailbox_status", status),
    signal,
    signal_name: name("mailbox_signal", signal),
    length: load("length"),
    part_count: load("part_count"),
    part_index: load("part_index"),
    capacity: Math.max(0, bytes.length - AREA),
    turn: "unknown",
  };
  noteReserved(bytes, findings);
  if (!checkTurn(bytes, mailbox, findings)) return mailbox;
  if (mailbox.status_name === "disposed" || mailbox.signal_name === "disposed") {
    mailbox.turn = "closed";
    if (mailbox.signal_name === "may_read") {
      findings.note("the part that is there is lost: nobody reads it behind the close");
    }
    if (mailbox.status_name !== "disposed") {
      findings.note("closed in signal alone: a close that was cut off, or undone by the original");
    }
    return mailbox;
  }
  mailbox.turn = mailbox.signal_name === "may_write" ? "the writer's" : "the reader's";
  if (mailbox.signal_name === "may_read" && checkPart(mailbox, findings)) {
    mailbox.part = toPayload(bytes, AREA, mailbox.length!, BATCH);
    judgePayload(bytes, mailbox, findings);
  }
  return mailbox;
}

/** The size of the section, and the two words that say whose turn it is. */
function checkTurn(bytes: Uint8Array, mailbox: Mailbox, findings: Findings): boolean {
  const least = limitOf("mailbox_size_min");
  if (bytes.length < least) {
    const fact = `the section has ${toPlural(bytes.length, "byte")}, fewer than ${least}`;
    findings.fault("mailbox.size", fact);
    return false;
  }
  // As in [mailbox.turn], `signal` is the first to decide.
  for (const word of ["signal", "status"] as const) {
    if (mailbox[`${word}_name`] !== "unknown") {
      if (mailbox[`${word}_name`] === "disposed") return true;
      continue;
    }
    const { offset } = fieldOf(HEADER, word);
    const most = word === "signal" ? "0, 1 or -1" : "0 or -1";
    const fact = `${word} is ${(mailbox[word] as number) | 0}, not ${most}`;
    findings.fault("mailbox.signal", fact, { offset });
    return false;
  }
  return true;
}

/** The rows of the table of [mailbox.check] that one part shows. */
function checkPart(mailbox: Mailbox, findings: Findings): boolean {
  const { capacity } = mailbox;
  const [length, count, index] = [mailbox.length!, mailbox.part_count!, mailbox.part_index!];
  const fail = (code: string, word: string, fact: string) => {
    findings.fault(code, fact, { offset: fieldOf(HEADER, word).offset });
    return false;
  };
  if (length < 1 || length > capacity) {
    const fact = `the length is ${toCount(length)}, not 1 to ${toCount(capacity)}`;
    return fail("mailbox.length", "length", fact);
  }
  const most = limitOf("mailbox_part_count_max");
  if (count < 1 || count > most) {
    const fact = `part_count is ${toCount(count)}, not 1 to ${toCount(most)}`;
    return fail("mailbox.part", "part_count", fact);
  }
  if (index >= count) {
    const fact = `part_index is ${toCount(index)}, of ${toPlural(count, "part")}`;
    return fail("mailbox.part", "part_index", fact);
  }
  return true;
}

/** Whether a payload of one part can be read. */
function judgePayload(bytes: Uint8Array, mailbox: Mailbox, findings: Findings): void {
  const { length, part_count, part_index, capacity } = mailbox;
  if (part_count === 1) {
    const found = undecodable(bytes.subarray(AREA, AREA + length!), BATCH);
    if (found !== undefined) findings.report(found.code, found.fact, { offset: AREA });
  } else if (part_index! + 1 < part_count! && length! < capacity) {
    const offset = fieldOf(HEADER, "length").offset;
    findings.note(
      "a part before the last does not fill the byte area",
      { offset },
      "mailbox.full_parts",
    );
  }
}

function noteReserved(bytes: Uint8Array, findings: Findings): void {
  const { offset, size } = fieldOf(HEADER, "reserved");
  if (bytes.subarray(offset, offset + size).every((byte) => byte === 0)) return;
  findings.note("reserved bytes not 0: the original stores -1 there when it closes", { offset });
}
