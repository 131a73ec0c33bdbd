/**
 * Scripts for a mailbox: the kit is the other side, one part at a time.
 *
 * @module
 */

import { little, toHex, toImage, word } from "../../reference/bytes.ts";
import type { Setting } from "../../reference/case.ts";
import { fieldOf } from "../../reference/layout.ts";
import { compare } from "../../static/difference.ts";
import { type PeerMemory, perform, Taker } from "../../static/driver.ts";
import { openRemote, type RemoteSession } from "../../static/remote.ts";
import type { Arena } from "../arena.ts";
import { Wrong } from "../verdict.ts";
import { requireWord, type Script, strictly, throwProblems } from "./stage.ts";

const CAPACITY = 32;
const HEADER = 32;
const VALUES = ["aü", [1, { b: null }], 0];
const PAYLOAD = new TextEncoder().encode(JSON.stringify(VALUES));
const ITEMS = VALUES.map((json) => ({ kind: 1, codec: 2, tag: 0, json }));
const CLOSED = 0xffff_ffff;

interface Mailbox {
  session: RemoteSession;
  memory: PeerMemory;
}

export const MAILBOX_SCRIPTS: Script[] = [
  {
    id: "mailbox/scripted_split_everywhere",
    about: "A payload cut at every byte, in the middle of a character too, and into single bytes.",
    clauses: [
      "mailbox.keep_parts",
      "mailbox.copy",
      "mailbox.signal_exchange",
      "mailbox.check",
      "mailbox.fault",
    ],
    role: "mailbox_reader",
    mayDecline: ["elements"],
    play: (arena) => withMailbox(arena, "mailbox_reader", splitEverywhere),
  },
  {
    id: "mailbox/scripted_slow_reader",
    about: "A reader that takes one part at a time: the writer goes on where its time was up.",
    clauses: ["mailbox.begun", "mailbox.write_all", "mailbox.parts", "mailbox.write"],
    role: "mailbox_writer",
    async play(arena) {
      for (const size of [1, 27, 28, 29, 90, 200]) {
        await withMailbox(arena, "mailbox_writer", (box) => slowReader(box, size));
      }
    },
  },
  {
    id: "mailbox/scripted_writer_leaves",
    about: "A writer that closes behind each part: what was whole is read, the rest is gone.",
    clauses: ["mailbox.closed", "mailbox.closed_part", "mailbox.first_answer"],
    role: "mailbox_reader",
    mayDecline: ["elements"],
    async play(arena) {
      for (const taken of [0, 1, 2]) {
        await withMailbox(arena, "mailbox_reader", (box) => writerLeaves(box, taken));
      }
    },
  },
  {
    id: "mailbox/scripted_hostile",
    about: "Every word of a part with every kind of wrong value: its code, and the mailbox closed.",
    clauses: ["mailbox.check", "mailbox.fault", "mailbox.close"],
    role: "mailbox_reader",
    async play(arena) {
      for (const [field, value, code] of HOSTILE) {
        await withMailbox(arena, "mailbox_reader", (box) => hostile(box, field, value, code));
      }
    },
  },
];

/** Words of a first part that no writer may store. */
const HOSTILE: [string, number, string][] = [
  ["status", 1, "mailbox.signal"],
  ["status", 0x8000_0000, "mailbox.signal"],
  ["signal", 2, "mailbox.signal"],
  ["signal", 0xffff_fffe, "mailbox.signal"],
  ["length", 0, "mailbox.length"],
  ["length", CAPACITY + 1, "mailbox.length"],
  ["length", 0xffff_ffff, "mailbox.length"],
  ["part_count", 0, "mailbox.part"],
  ["part_count", 0x8000_0000, "mailbox.part"],
  ["part_index", 1, "mailbox.part"],
  ["part_index", 0xffff_ffff, "mailbox.part"],
];

async function withMailbox(
  arena: Arena,
  role: Setting["role"],
  play: (box: Mailbox) => Promise<void>,
): Promise<void> {
  const memory = new Uint8Array(HEADER + CAPACITY);
  const setting: Setting = { kind: "read", image: toImage(memory), role };
  const opened = await openRemote(await arena.connect(0), setting, memory);
  if (opened.session === undefined) throw new Wrong(`attaching gave ${opened.result}, not ok`);
  try {
    await play({ session: opened.session as RemoteSession, memory: opened.memory });
    await opened.drop();
  } catch (error) {
    await arena.kill(0);
    throw error;
  }
}

/** Stores a part as a writer does, `signal` last. */
async function putPart(
  { memory }: Mailbox,
  part: Uint8Array,
  index: number,
  count: number,
): Promise<void> {
  await memory.patch([
    { offset: HEADER, hex: toHex(part) },
    { offset: fieldOf("mailbox_header", "length").offset, hex: toHex(little(part.length, 4)) },
    { offset: fieldOf("mailbox_header", "part_count").offset, hex: word(count) },
    { offset: fieldOf("mailbox_header", "part_index").offset, hex: word(index) },
  ]);
  await memory.patch([{ offset: fieldOf("mailbox_header", "signal").offset, hex: word(1) }]);
}

/** Throws unless a word of the header is this. */
async function wordIs(
  { memory }: Mailbox,
  what: string,
  field: string,
  must: number,
): Promise<void> {
  const { offset } = fieldOf("mailbox_header", field);
  requireWord(`${what}, ${field}`, await memory.dump(), offset, must);
}

function drain({ session, memory }: Mailbox) {
  return perform({ read: true }, session, memory, undefined);
}

async function splitEverywhere(box: Mailbox): Promise<void> {
  for (let cut = 1; cut < PAYLOAD.length; cut++) {
    await putPart(box, PAYLOAD.subarray(0, cut), 0, 2);
    throwProblems(
      `cut at ${cut}, first part`,
      compare(await drain(box), { items: [], end: "nothing" }),
    );
    await wordIs(box, `[mailbox.signal_exchange] cut at ${cut}`, "signal", 0);
    await putPart(box, PAYLOAD.subarray(cut), 1, 2);
    throwProblems(`cut at ${cut}`, compare(await drain(box), { items: ITEMS, end: "nothing" }));
  }
  for (let index = 0; index < PAYLOAD.length; index++) {
    await putPart(box, PAYLOAD.subarray(index, index + 1), index, PAYLOAD.length);
    const items = index === PAYLOAD.length - 1 ? ITEMS : [];
    throwProblems(`byte ${index} alone`, compare(await drain(box), { items, end: "nothing" }));
  }
}

async function slowReader(box: Mailbox, size: number): Promise<void> {
  const { session, memory } = box;
  const taker = await Taker.make({ role: "mailbox_writer" }, memory);
  const where = `a text of ${size} letters`;
  const isWhole = size + 4 <= CAPACITY; // with its quotes, in an array
  const got = await session.write({ json: ["x".repeat(size)] }, true);
  throwProblems(`${where}, write`, compare(got, isWhole ? "ok" : "wait.timeout"));
  for (let tries = 0; tries < 20; tries++) {
    const taken = await strictly(() => taker.take());
    if (taken.items.length > 0) {
      const json = "x".repeat(size);
      const items = [{ kind: 1, codec: 2, tag: 0, json }];
      return throwProblems(where, compare(taken, { items, end: "nothing" }));
    }
    const resumed = await session.resume();
    if (resumed !== "ok" && resumed !== "wait.timeout") {
      throwProblems(`${where}, resume`, compare(resumed, "ok"));
    }
  }
  throw new Wrong(`${where}: [mailbox.write_all] the last part never came`);
}

async function writerLeaves(box: Mailbox, taken: number): Promise<void> {
  const third = Math.ceil(PAYLOAD.length / 3);
  const parts = [0, 1, 2].map((index) => PAYLOAD.subarray(index * third, (index + 1) * third));
  const where = `behind ${taken} parts`;
  for (let index = 0; index < taken; index++) {
    await putPart(box, parts[index]!, index, 3);
    throwProblems(where, compare(await drain(box), { items: [], end: "nothing" }));
  }
  await putPart(box, parts[taken]!, taken, 3);
  const words = ["status", "signal"].map((field) => fieldOf("mailbox_header", field).offset);
  await box.memory.patch(words.map((offset) => ({ offset, hex: word(CLOSED) })));
  throwProblems(where, compare(await drain(box), { items: [], end: "peer.closed" }));
}

async function hostile(box: Mailbox, field: string, value: number, code: string): Promise<void> {
  await putPart(box, PAYLOAD, 0, 1);
  await box.memory.patch([{ offset: fieldOf("mailbox_header", field).offset, hex: word(value) }]);
  const where = `${field} ${value}`;
  throwProblems(where, compare(await drain(box), { items: [], end: code }));
  for (const name of ["status", "signal"]) {
    await wordIs(box, `[mailbox.close] ${where}`, name, CLOSED);
  }
}
