/**
 * What a port need not offer, and so which cases it may decline.
 *
 * @module
 */

import {
  type Case,
  changeMember,
  isInvalid,
  type MessageCase,
  type Operation,
  type Optional,
  type Payload,
  type Setting,
  type ValidCase,
  type Wanted,
} from "./case.ts";
import { limitOf, valueOf } from "./layout.ts";

const BATCH = valueOf("codec", "json_batch");
const JSON_TEXT = valueOf("codec", "json");
const DATA = valueOf("frame_kind", "data");

/** What no member of a case shows. */
const BY_ID: Record<string, Optional> = {
  "property/decode_unknown": "unknown_codec",
  "call/cancelled": "later",
  "call/cancelled_other": "later",
  "call/duplicate": "later",
  "call/two_held": "later",
  "call/window": "later",
  "call/window_other": "later",
  "codec/json_surrogate": "surrogates",
  "frame/write_parts": "chunk_sizes",
  "mailbox/write_full": "chunk_sizes",
  "mailbox/write_parts": "chunk_sizes",
  "mailbox/write_two_parts": "chunk_sizes",
  "mailbox/write_begun": "chunk_sizes",
  "mailbox/write_begun_other": "chunk_sizes",
  "pipe/close_finished": "finishing",
  "pipe/publish_closed": "finishing",
  "pipe/publish_finished": "finishing",
  "pipe/vacated_inbox": "inbox",

  "port/inbox_fault": "inbox",
  "port/lent_and_released": "inbox",
  "port/publish_before_read": "finishing",
  "ring/batch": "finishing",
  "ring/fault_stores_nothing": "release",
  "wait/rung_reader_publish": "finishing",
};

/** The clauses of codec `cbor`. */
const CBOR = /^codec\.(?:bad_)?cbor/;

/** A case as it is run. */
interface Whole {
  setting: Setting;
  operations: Operation[];
  results: Wanted[];
  /** Whether what is read is looked into. */
  isDecoded: boolean;
}

const RULES: [Optional, (whole: Whole) => boolean][] = [
  ["alignment", ({ setting }) => !!setting.memory_offset && !isMailbox(setting)],
  ["word_alignment", ({ setting }) => !!setting.memory_offset && isMailbox(setting)],
  [
    "endpoint",
    ({ setting: { role, endpoint } }) =>
      role !== "port" && !isProperty({ role }) && !isFanout({ role }) && endpoint !== undefined,
  ],
  [
    "calls",
    ({ setting, operations }) =>
      setting.calls === true || payloads(operations).some(({ kind = DATA }) => kind !== DATA),
  ],
  ["values", ({ setting, results }) =>
    setting.kind === "decode" ||
    isMailbox(setting) && ["message.text", "message.json"].some((code) => reports(results, code))],
  ["bytes", ({ setting, results }) =>
    setting.kind === "read" && !isMailbox(setting) &&
    messages(results).some(({ codec }) => codec >= JSON_TEXT)],
  [
    "elements",
    ({ isDecoded, operations }) =>
      isDecoded && operations.some((entry) => "read" in entry && entry.read !== true),
  ],
  ["unknown_codec", ({ results }) => reports(results, "message.codec")],
  [
    "application_codec",
    ({ operations }) =>
      payloads(operations).some(({ codec = 0 }) => codec >= limitOf("codec_application_min")),
  ],
  ["batches", ({ operations }) => payloads(operations).some(({ codec }) => codec === BATCH)],
  [
    "lending",
    ({ operations }) =>
      operations.some((entry) =>
        ["peek", "release", "claim", "finish", "abandon"].some((key) => key in entry)
      ),
  ],
  ["first_id", ({ setting }) => setting.first_id !== undefined],
  ["vacating", ({ operations }) => operations.some((entry) => "vacate" in entry)],
  [
    "chunk_sizes",
    ({ setting, operations, results }) =>
      !isProperty(setting) &&
      operations.some((entry, index) =>
        "write" in entry && !entry.wait && (entry.write.count ?? 0) >= 48 &&
        !mayBe(results[index], "refused")
      ),
  ],
];

/** Returns the cases with `may_decline` wherever it belongs. */
export function markOptional(cases: Case[]): Case[] {
  const byId = new Map(cases.map((entry) => [entry.id, entry]));
  return cases.map((entry) => {
    const names = optionalIn(entry, byId);
    if (names.length === 0) return entry;
    const { id, about, clauses, ...rest } = entry;
    return { id, about, clauses, may_decline: names, ...rest } as Case;
  });
}

function optionalIn(entry: Case, cases: Map<string, Case>): Optional[] {
  const base = isInvalid(entry) ? cases.get(entry.from) : entry;
  const setting = structuredClone(base) as ValidCase;
  if (isInvalid(entry) && "member" in entry.change) {
    changeMember(entry.id, setting, entry.change.member, entry.change.value);
  }
  const { expect: { results = [] } } = entry;
  const { operations = [], kind } = setting;
  const isDecoded = kind === "decode" || setting.role === "mailbox_reader";
  const whole = { setting, operations, results, isDecoded };
  const names = RULES.filter(([, holds]) => holds(whole)).map(([name]) => name);
  if (kind === "decode" && entry.clauses.some((id) => CBOR.test(id))) names.push("cbor");
  const own = BY_ID[entry.id];
  return own === undefined ? names : [...names, own];
}

function isMailbox({ role }: Setting): boolean {
  return role.startsWith("mailbox");
}

function isProperty({ role }: Pick<Setting, "role">): boolean {
  return role.startsWith("property");
}

function isFanout({ role }: Pick<Setting, "role">): boolean {
  return role.startsWith("fanout");
}

function payloads(operations: Operation[]): Payload[] {
  return operations.flatMap((entry) =>
    "write" in entry
      ? [entry.write]
      : "claim" in entry
      ? [entry.claim]
      : "finish" in entry
      ? [entry.finish]
      : []
  );
}

function items(results: Wanted[]) {
  return results.flatMap((result) =>
    typeof result === "object" && "items" in result ? result.items : []
  );
}

/** Whether a call may give this. */
function mayBe(result: Wanted | undefined, outcome: string): boolean {
  const isChoice = typeof result === "object" && "one_of" in result;
  return isChoice ? result.one_of.includes(outcome) : result === outcome;
}

function messages(results: Wanted[]): MessageCase[] {
  return items(results).filter((item) => "kind" in item);
}

function reports(results: Wanted[], code: string): boolean {
  return items(results).some((item) => "report" in item && item.report === code);
}
