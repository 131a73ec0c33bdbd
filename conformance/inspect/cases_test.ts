// Every static case: what the inspector finds in its image is what the case says comes of it, as
// far as the bytes alone can show that.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import type { Drained, Wanted } from "../reference/case.ts";
import { loadCases, resolve, type Resolved } from "../static/load.ts";
import { annotate, diff, format, formatLines, inspect, type Inspection } from "./mod.ts";

const cases = loadCases();

/** What the bytes cannot show, or show to nobody who takes part; by reason. */
const EXCEPTIONS: Record<string, string> = {
  "where the memory begins is not in its bytes": `
    segment/memory_misaligned segment/create_misaligned mailbox/misaligned`,
  "an endpoint is asked for, and the bytes do not say which": `
    segment/taken_attached segment/taken_closed segment/attach_taken_bits_1
    segment/attach_taken_bits_2 segment/attach_taken_bits_3 port/taken
    port/no_rings_taken pipe/find_own_taken property/open_taken fanout/attach_taken
    fanout/attach_no_endpoint`,
  "it is taken because its state is invalid, which counts as a fault of its own": `
    segment/taken_unknown segment/attach_taken_bits_4`,
  "a ring or two are asked for, and the bytes do not say which": `
    fanout/beyond fanout/no_record fanout/writer_reads
    pipe/find_other_kind pipe/find_beyond pipe/find_none pipe/find_of_others pipe/find_own_none
    port/no_outgoing port/no_incoming port/no_rings port/other_peers port/hub_client_without`,
  "another geometry is asked for": `
    segment/create_other_endpoints segment/create_other_writer segment/create_other_reader
    segment/create_other_capacity segment/create_other_label segment/create_other_start
    segment/create_other_control property/create_other_name property/create_other_longer
    property/create_other_none`,
  "the memory is blank, or garbage, until a creator has formatted it": `
    segment/create segment/create_start segment/create_on_garbage segment/format_again
    segment/create_smallest segment/create_gap segment/create_too_small segment/create_too_large
    port/example property/create property/create_data_none property/create_data_odd
    property/create_writer property/create_reader property/create_start property/create_unnamed
    property/create_name_utf8 property/create_name_124 property/create_name_125
    property/create_mixed fanout/create fanout/create_era`,
  "the reader drops this message at its first frame, and does not look at its total": `
    frame/total_limit frame/total_unknown_less frame/total_unknown_low frame/total_unknown_high
    pipe/total_7 pipe/total_100000000 pipe/total_1fffffffffffff`,
  "the fault shows only later: in another call, or by an answer that comes before": `
    pipe/parts_dropped_inside pipe/parts_dropped_less pipe/parts_dropped_more
    pipe/answer_batch_fault pipe/answer_still_fault pipe/answer_still_fault_own pipe/lend_broken
    port/inbox_fault ring/fault_stores_nothing ring/again_writer_head
    pipe/lend_extended_broken pipe/vacated_fault segment/vacate_cursor
    segment/fault_after_invalid segment/peers_marked segment/peers_marked_closed`,
  "a word of the endpoint's own is wrong, at which only its peer looks": "ring/again_never",
  "the fault is in words that a writer finds before it does anything": `
    mailbox/write_signal mailbox/write_status mailbox/turn_writer_signal
    mailbox/turn_writer_status mailbox/turn_writer_both mailbox/answer_write_fault
    mailbox/answer_write_fault_restored mailbox/answer_write_fault_own_close
    mailbox/close_again_writer_broken`,
  "a writer does not look at the words of a part": "mailbox/write_waits",
  "the inspector leaves channels of other kinds than rings alone": `
    fanout/other_kind fanout/writer_beyond fanout/writer_none fanout/reader_stated
    fanout/no_records fanout/half_record fanout/capacity_192 fanout/capacity_128
    fanout/start_odd fanout/start_8`,
  "a reader that is gone is not counted, whatever its state is": "fanout/held_invalid",
};

const excepted = new Map(
  Object.entries(EXCEPTIONS).flatMap(([reason, ids]) =>
    ids.trim().split(/\s+/).map((id) => [id, reason] as const)
  ),
);

/** The report of a message that the inspector, which takes all of them, does not lose. */
const OF_THE_READER = ["message.size", "message.kind"];

function look({ memory, setting }: Resolved) {
  const as = setting.role.startsWith("mailbox") ? "mailbox" : "segment";
  return inspect(memory, { as });
}

/** What the first call of the case gives, where that is a read. */
function firstRead({ setting, expect }: Resolved): Drained | undefined {
  const operation = setting.operations?.[0];
  if (operation === undefined || !("read" in operation)) return undefined;
  const first = expect.results?.[0] as Wanted | undefined;
  return typeof first === "object" && "items" in first ? first : undefined;
}

/** The fault that the case says. */
function faultOf(resolved: Resolved): string | undefined {
  const { result } = resolved.expect;
  // A property is looked at by who opens it, and not by the checks of a segment.
  if (result?.startsWith("property.")) return undefined;
  if (result !== undefined && result !== "ok") return result;
  const read = firstRead(resolved);
  const end = read?.end;
  if (end !== undefined && /^(?:frame|ring|mailbox)\./.test(end)) return end;
  return read?.reason === "segment.state" ? read.reason : undefined;
}

/** The reports of a first read, in order; what is wrong with a call, its caller is told. */
function reportsOf(resolved: Resolved): string[] | undefined {
  if (resolved.setting.kind === "call") return undefined;
  const read = firstRead(resolved);
  if (read === undefined) return undefined;
  const codes = read.items.flatMap((item) => "report" in item ? [item.report] : []);
  return codes.some((code) => OF_THE_READER.includes(code)) ? undefined : codes;
}

Deno.test("inspect finds in every case the fault that comes of it, and none in a sound one", () => {
  const wrong: string[] = [];
  let faults = 0;
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const must = faultOf(resolved);
    const { fault } = look(resolved);
    const isSame = fault?.code === must;
    if (isSame && must !== undefined) faults += 1;
    if (isSame !== excepted.has(entry.id)) continue;
    const fact = isSame ? "needs no exception" : `must be ${must}: ${fault?.fact}`;
    wrong.push(`${entry.id}: ${fault?.code ?? "no fault"} ${fact}`);
  }
  assertEquals(wrong, []);
  assert(faults > 100, `only ${faults} faults were compared`);
});

Deno.test("inspect finds in a call for what its list is refused", () => {
  const codes = ["message.values", "message.text", "message.json", "message.codec"];
  let count = 0;
  for (const entry of cases.values()) {
    const written = entry.id.startsWith("call/") ? entry.expect.results?.[1] : undefined;
    if (typeof written !== "object" || !("items" in written)) continue;
    const [first] = written.items;
    const name = first && "kind" in first && first.kind === 5 ? first.values?.[0] : undefined;
    const code = name && "text" in name && codes.includes(name.text!) ? name.text : undefined;
    // A call of another codec is no list, and the inspector reads it as what it says it is.
    if (code === undefined || entry.id === "call/codec") continue;
    assertEquals(look(resolve(entry, cases)).reports.map((each) => each.code), [code], entry.id);
    count += 1;
  }
  assert(count > 15, `only ${count} lists were compared`);
});

Deno.test("inspect: the exceptions name cases", () => {
  for (const id of excepted.keys()) assert(cases.has(id), id);
});

Deno.test("inspect cites a clause that the case cites, or the one that asks for its check", () => {
  // Cases that show several clauses at once name the one that they are about.
  const checks = ["segment.check", "segment.await", "frame.check", "mailbox.check", "ring.cursor"];
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const { fault } = look(resolved);
    if (faultOf(resolved) === undefined || fault === null || excepted.has(entry.id)) continue;
    const isCited = entry.clauses.includes(fault.clause) || checks.includes(fault.clause);
    assert(isCited, `${entry.id}: [${fault.clause}]`);
    assert(fault.text.length > 20 && fault.meaning.endsWith("."), entry.id);
  }
});

Deno.test("inspect reports the messages that a reader of the case loses, and no others", () => {
  let count = 0;
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const must = reportsOf(resolved);
    if (must === undefined || excepted.has(entry.id)) continue;
    // The application knows its codecs, the inspector knows none of them.
    const isKnown = must.includes("message.codec") && !/unknown_(?:64|127)$|\/cbor_/.test(entry.id);
    const codes = look(resolved).reports.map(({ code }) => code);
    assertEquals(codes, isKnown ? [] : must, entry.id);
    count += must.length;
  }
  assert(count > 20, `only ${count} reports were compared`);
});

Deno.test("inspect counts the messages of every case that is read to its end", () => {
  let count = 0;
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const { setting, expect } = resolved;
    const read = firstRead(resolved);
    const isWhole = setting.kind === "read" && setting.role === "reader" &&
      setting.operations?.length === 1 && expect.results?.length === 1 && "channel" in setting;
    if (!isWhole || read === undefined || excepted.has(entry.id)) continue;
    if (read.items.some((item) => "report" in item)) continue;
    const ring = look(resolved).channels?.[setting.channel!]?.ring;
    if (ring === undefined || setting.endpoint === 0) continue;
    assertEquals(ring.message_count, read.items.length, entry.id);
    assertEquals(ring.ended, read.end === "ended", entry.id);
    count += 1;
  }
  assert(count > 50, `only ${count} cases were compared`);
});

/** What the first get of a property's case gives, where that comes before any change. */
function firstGet({ setting, expect }: Resolved): Wanted | undefined {
  const [operation] = setting.operations ?? [];
  return operation !== undefined && "get" in operation ? expect.results?.[0] as Wanted : undefined;
}

Deno.test("inspect shows of every property the value and the version that a reader gets", () => {
  let [values, nones, reports] = [0, 0, 0];
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const must = firstGet(resolved);
    const { channel } = resolved.setting;
    if (must === undefined || channel === undefined) continue;
    const found = look(resolved);
    const { property } = found.channels![channel]!;
    if (typeof must === "string") {
      const codes = found.reports.map(({ code }) => code);
      if (must.startsWith("pipe.")) continue; // It is the reader's own end that is over.
      assertEquals(codes, [must], entry.id);
      reports += 1;
      continue;
    }
    if (!("items" in must)) continue;
    // A reader that decodes nothing gets what nobody could decode.
    if (entry.id !== "property/decode_not") assertEquals(found.reports, [], entry.id);
    assertEquals(property!.version, must.version, entry.id);
    const last = property!.slots.find(({ holds }) => holds === "last");
    const [item] = must.items;
    if (item === undefined || !("kind" in item)) {
      assertEquals(last?.present ?? 0, 0, entry.id);
      nones += 1;
      continue;
    }
    assertEquals([last!.present, last!.codec], [1, item.codec], entry.id);
    if (item.text) assertEquals(last!.value.preview, JSON.stringify(item.text), entry.id);
    values += 1;
  }
  assert(values > 10 && nones > 3 && reports > 15, `${values}, ${nones}, ${reports}`);
});

Deno.test("inspect shows no property that a reader refuses to open, and says why", () => {
  let count = 0;
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const { channel, role } = resolved.setting;
    const isOpened = entry.id.startsWith("property/open") && channel !== undefined;
    if (!isOpened || role !== "property_reader") continue;
    const { channels, notes } = look(resolved);
    const found = channels![channel];
    if (found?.kind_name !== "property") continue;
    const isOpen = resolved.expect.result !== "property.channel";
    assertEquals(found.property !== undefined, isOpen, entry.id);
    assertEquals(notes.some(({ clause }) => clause === "property.areas"), !isOpen, entry.id);
    count += 1;
  }
  assert(count > 7, `only ${count} were compared`);
});

/** Without their magic, or with a signal of -1 alone, they look like the other. */
const AMBIGUOUS = [
  "segment/create_while_formatting",
  "segment/order_magic",
  "segment/order_unready",
  "segment/order_ready",
  "mailbox/turn_reader_closing",
  "mailbox/turn_writer_closing",
];

Deno.test("inspect guesses from the bytes of every case what they are", () => {
  const wrong: string[] = [];
  for (const entry of cases.values()) {
    const resolved = resolve(entry, cases);
    const { memory, setting } = resolved;
    const as = setting.role.startsWith("mailbox") ? "mailbox" : "segment";
    if (inspect(memory).as === as || memory.every((byte) => byte === 0)) continue;
    // Nothing else than the words that are broken here says that it is a mailbox.
    if (look(resolved).fault?.code !== "mailbox.signal") wrong.push(entry.id);
  }
  assertEquals(wrong, AMBIGUOUS);
});

// Whatever the bytes are, the inspector ends, throws nothing, and prints no more than it may.

const schema = JSON.parse(
  await Deno.readTextFile(new URL("../inspect.schema.json", import.meta.url)),
);
const validate = new Ajv2020({ allErrors: true, strict: false }).compile(schema);

const SEEDS = 4;
/** Bytes that are more often wrong in an interesting way than others. */
const VALUES = [0, 1, 2, 3, 6, 7, 16, 31, 64, 127, 128, 255];

/** Numbers from a seed, below a bound. */
function makeRandom(seed: number): (below: number) => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Changes a few bytes: of the header and the tables, of the control words, of anything. */
function mutate(image: Uint8Array, random: (below: number) => number): Uint8Array {
  const size = random(8) === 0 ? random(image.length + 1) : image.length;
  const bytes = image.slice(0, size);
  for (let count = 1 + random(4); count > 0 && size > 0; count--) {
    const most = [64, 512, 1100, size][random(4)]!;
    const at = random(Math.min(size, most));
    const value = random(3) === 0 ? random(256) : VALUES[random(VALUES.length)]!;
    bytes.fill(value, at, at + [1, 1, 2, 4, 8][random(5)]!);
  }
  return bytes;
}

function assertBounded(bytes: Uint8Array, found: Inspection, text: string): void {
  const count = found.faults.length + found.notes.length + found.reports.length;
  const endpoints = found.endpoints?.length ?? 0;
  const channels = found.channels?.length ?? 0;
  assert(count <= 3 * 33 * (endpoints + channels + 1), `${count} findings`);
  // A line of text for each endpoint, and for each channel no more than its frames may have.
  const lines = text.split("\n").length;
  assert(lines <= 40 + endpoints + channels * (12 + 33) + count * 6, `${lines} lines`);
  assert(endpoints * 128 + channels * 64 <= bytes.length, "records that are not there");
}

Deno.test("inspect, format, annotate and diff take every change of every case's image", () => {
  const images = [...loadCases().values()].map((entry) => resolve(entry, loaded).memory);
  let faults = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    images.forEach((image, index) => {
      const bytes = mutate(image, makeRandom(seed * 65_537 + index));
      const place = `seed ${seed}, image ${index}`;
      const found = inspect(bytes, { now: 1e12 });
      if (found.fault !== null) faults += 1;
      assert(validate(found), `${place}: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
      assertBounded(bytes, found, format(found));
      if (seed > 1) return; // The dumps take most of the time.
      const lines = annotate(bytes, { now: 1e12 });
      assert(lines.reduce((sum, { size }) => sum + size, 0) === bytes.length, place);
      assert(formatLines(lines).length < 200 * (lines.length + 1));
      assert((diff(image, bytes) === "") === equals(image, bytes), place);
    });
  }
  assert(faults > images.length, `only ${faults} faults: the changes are too tame`);
});

const loaded = loadCases();

function equals(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

Deno.test("inspect takes bytes that nobody has written", () => {
  const random = makeRandom(20260203);
  for (let count = 0; count < 500; count++) {
    const bytes = Uint8Array.from({ length: random(600) }, () => random(256));
    if (random(2) === 0) bytes.set(new TextEncoder().encode("MILLRACE").subarray(0, bytes.length));
    for (const as of ["segment", "mailbox", undefined] as const) {
      const found = inspect(bytes, { ...(as && { as }), now: 0 });
      assert(validate(found), JSON.stringify(validate.errors?.slice(0, 3)));
      assertBounded(bytes, found, format(found));
    }
    annotate(bytes);
  }
});

Deno.test("inspect walks a full ring of the smallest chunks in bounded time", () => {
  // 2^18 parts of one byte: keeping or copying them one by one for each would never end.
  const capacity = 2 ** 23;
  const bytes = new Uint8Array(1024 + capacity);
  const view = new DataView(bytes.buffer);
  bytes.set(resolve(loaded.get("segment/pipe")!, loaded).memory.subarray(0, 1024));
  view.setUint32(0x10, bytes.length, true);
  view.setUint32(0x198, capacity, true);
  const count = capacity / 32 - 2;
  view.setUint32(0x200, 32 * (count + 1), true);
  view.setUint32(0x400, 16, true);
  view.setUint32(0x404, 0x0101, true);
  view.setUint32(0x410, count, true);
  for (let index = 1; index <= count; index++) {
    view.setUint32(0x400 + 32 * index, 1, true);
    view.setUint32(0x404 + 32 * index, index === count ? 0x0201 : 1, true);
  }
  const found = inspect(bytes);
  assert(found.fault === null, found.fault?.fact);
  assert(found.channels![0]!.ring!.message_count === 1);
  assert(format(found).length < 10_000);
});
