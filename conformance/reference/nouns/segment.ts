/** The cases of `spec/segment.md`. @module */

import { ATTACHED, bellIs, bellIsNot, Cases, CLOSED, drained, field, imageIs } from "../builder.ts";
import { member, message, pipe, reading, rungIs, setRecord, stateIs, text } from "../builder.ts";
import { VACANT, whole } from "../builder.ts";
import { areasAre, property } from "../builder_many.ts";
import { toImage, word } from "../bytes.ts";
import type { Expected, Operation, Setting } from "../case.ts";
import { fieldOf, fromChapter, mustHold } from "../layout.ts";
import { buildSegment, type ChannelPlan, descriptorAt, failed, fillRing } from "../encode.ts";
import { NOBODY, put, recordAt, type SegmentPlan } from "../encode.ts";
import { addStates } from "./segment_state.ts";
import { addVacate } from "./vacate.ts";

const PIPE: SegmentPlan = {
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity: 256, label: 7 }],
};
const DESCRIPTOR = descriptorAt(2, 0);
const HEADER = "segment_header";

/** All cases of this noun. */
export function segmentCases(): Cases {
  const cases = new Cases("segment");
  addAttach(cases);
  addHeaderFaults(cases);
  addChannels(cases);
  addChannelFaults(cases);
  addEndpoints(cases);
  addCreate(cases);
  addStates(cases);
  addPrivate(cases);
  addOrder(cases);
  addPeers(cases);
  addVacate(cases);
  return cases;
}

function attaching(bytes: Uint8Array, more: Partial<Setting> = {}): Setting {
  return { kind: "attach", image: toImage(bytes), role: "segment", ...more };
}

function edited(plan: SegmentPlan, edit: (bytes: Uint8Array) => void): Uint8Array {
  const { bytes } = buildSegment(plan);
  edit(bytes);
  return bytes;
}

function addAttach(cases: Cases): void {
  const ok = { result: "ok", unchanged: true } as const;
  const add = (name: string, about: string, clauses: string, bytes: Uint8Array) =>
    cases.valid(attaching(bytes), { name, about, clauses, ...ok });
  add(
    "pipe",
    "The example of the chapter: two endpoints and one ring.",
    "segment.check segment.little_endian segment.align segment.await",
    buildSegment(PIPE).bytes,
  );
  const endpoint = { endpoints: 1, channels: [] };
  add("smallest", "One endpoint and no channel.", "segment.check", buildSegment(endpoint).bytes);
  add(
    "larger_memory",
    "The segment ends before the memory does.",
    "segment.check",
    Uint8Array.of(...buildSegment(PIPE).bytes, ...new Uint8Array(128)),
  );
  add(
    "newer_minor",
    "A later minor version, with optional features and reserved bytes in use, is accepted.",
    "segment.check",
    edited(PIPE, (bytes) => {
      put(bytes, 0, HEADER, "version_minor", 7);
      put(bytes, 0, HEADER, "optional_features", 0x80000001);
      for (
        const [at, structure] of [
          [0, HEADER],
          [recordAt(1), "endpoint_record"],
          [DESCRIPTOR, "channel_descriptor"],
        ] as const
      ) {
        const { size } = fieldOf(structure, "reserved");
        put(bytes, at, structure, "reserved", new Uint8Array(size).fill(0xa5));
      }
    }),
  );
}

function addHeaderFaults(cases: Cases): void {
  const from = "segment/pipe";
  const add = (
    name: string,
    about: string,
    code: string,
    key: string,
    value: number,
    clauses = "segment.check",
  ) =>
    cases.invalid(from, field(0, HEADER, key, value), {
      name,
      about,
      clauses,
      result: code,
      unchanged: true,
    });
  const refuse = (code: string) => ({ result: code, unchanged: true } as const);
  cases.invalid(from, member("image.size", 128), {
    name: "memory_too_small",
    about: "Less memory than a header and one record take.",
    clauses: "segment.check",
    ...refuse("segment.size"),
  });
  cases.invalid(from, member("image.size", 255), {
    name: "memory_short",
    about: "A byte less than the smallest segment.",
    clauses: "segment.check",
    ...refuse("segment.size"),
  });
  cases.invalid(from, member("memory_offset", 64), {
    name: "memory_misaligned",
    about: "The memory begins at an odd multiple of 64.",
    clauses: "segment.align segment.check",
    ...refuse("segment.size"),
  });
  cases.invalid(
    from,
    { at: 0, structure: HEADER, field: "magic", hex: "4d 49 4c 4c 52 41 43 00" },
    {
      name: "wrong_magic",
      about: "The last letter of the magic is missing.",
      clauses: "segment.check",
      ...refuse("segment.magic"),
    },
  );
  add("blank", "Nobody has formatted it.", "segment.unready", "ready", 0, "segment.await");
  add("formatting", "Somebody is at it.", "segment.unready", "ready", 1, "segment.await");
  add("ready_unknown", "A value that nobody stores.", "segment.magic", "ready", 3);
  add("major_two", "Another major version.", "segment.version", "version_major", 2);
  const clauses = "segment.little_endian segment.check";
  add("big_endian", "The other byte order.", "segment.version", "version_major", 256, clauses);
  add("feature", "A required feature.", "segment.feature", "required_features", 0x80000000);
  add("size_odd", "A size that is no multiple of 128.", "segment.size", "size", 1216 + 16);
  add("size_beyond", "More than the memory.", "segment.size", "size", 1408);
  add("size_most", "The largest number.", "segment.size", "size", 0xffffff80);
  add("no_endpoints", "No endpoint at all.", "segment.table", "endpoint_count", 0);
  add("endpoints_257", "One endpoint too many.", "segment.table", "endpoint_count", 257);
  add("endpoints_most", "A count that overflows.", "segment.table", "endpoint_count", 0xffffffff);
  add("channels_1025", "One channel too many.", "segment.table", "channel_count", 1025);
  add("channels_most", "A count that overflows.", "segment.table", "channel_count", 0xffffffff);
  add("tables_beyond", "Tables behind the end.", "segment.table", "channel_count", 15);
}

function addChannels(cases: Cases): void {
  const ok = { result: "ok", unchanged: true } as const;
  const add = (name: string, about: string, clauses: string, plan: SegmentPlan) =>
    cases.valid(attaching(buildSegment(plan).bytes), { name, about, clauses, ...ok });
  const ring = { writer: 0, reader: 1, capacity: 256 };
  add("two_rings", "Two rings between two endpoints: a port.", "segment.check", {
    endpoints: 2,
    channels: [ring, { writer: 1, reader: 0, capacity: 256 }],
  });
  add("hub", "Three endpoints; the first reads from both others.", "segment.check", {
    endpoints: 3,
    channels: [{ ...ring, writer: 1, reader: 0 }, { ...ring, writer: 2, reader: 0 }],
  });
  add("placed_apart", "The bytes stand before the control words, with gaps.", "segment.check", {
    endpoints: 2,
    channels: [{ ...ring, control_offset: 1024, control_size: 640, data_offset: 640 }],
    extra: 512,
  });
  add(
    "unknown_kind",
    "A channel of a kind that does not exist yet, with sizes that no ring has.",
    "segment.unknown_kind segment.check",
    {
      endpoints: 2,
      channels: [{ ...ring, kind: 9, control_size: 5, capacity: 300, start: 3, reader: NOBODY }],
    },
  );
  add("kinds_known_later", "Kinds 0 and 2 are as unknown as any other.", "segment.unknown_kind", {
    endpoints: 2,
    channels: [{ ...ring, kind: 0 }, { ...ring, kind: 2, control_size: 0, capacity: 1 }],
  });
  add("empty_area", "An area of 0 bytes inside another overlaps nothing.", "segment.check", {
    endpoints: 2,
    channels: [ring, { ...ring, kind: 9, control_size: 0, control_offset: 640, capacity: 128 }],
  });
}

function addChannelFaults(cases: Cases): void {
  const add = (
    name: string,
    about: string,
    from: string,
    key: string,
    value: number,
    at = DESCRIPTOR,
    clauses = "segment.check",
  ) =>
    cases.invalid(from, field(at, "channel_descriptor", key, value), {
      name,
      about,
      clauses,
      result: "segment.channel",
      unchanged: true,
    });
  const from = "segment/pipe";
  add("no_such_writer", "Its writer does not exist.", from, "writer", 2);
  add("no_such_reader", "Its reader does not exist.", from, "reader", 0xffffffff);
  add("to_itself", "Writer and reader are the same.", from, "reader", 0);
  add("control_misaligned", "The control words are not aligned.", from, "control_offset", 576);
  add("control_in_tables", "The control words are in the tables.", from, "control_offset", 384);
  add("control_beyond", "The control words end behind the end.", from, "control_offset", 1024);
  add("data_misaligned", "The byte area is not aligned.", from, "data_offset", 1088);
  add("data_beyond", "The byte area ends behind the end.", from, "data_offset", 1152);
  add("data_overflow", "Offset and size overflow to 128.", from, "data_offset", 0xffffff80);
  add("control_short", "The control area is a byte short.", from, "control_size", 511);
  add("control_overflow", "Offset and size overflow to 0.", from, "control_size", 0xfffffe00);
  add("overlap_own", "The byte area lies in the control area.", from, "data_offset", 768);
  const ring = "segment.check ring.capacity";
  add("capacity_odd", "No power of two.", from, "data_size", 192 + 64 - 1, DESCRIPTOR, ring);
  const apart = "segment/placed_apart";
  add(
    "capacity_384",
    "No power of two, with room for it.",
    apart,
    "data_size",
    384,
    DESCRIPTOR,
    ring,
  );
  add("capacity_small", "Half the smallest ring.", from, "data_size", 128, DESCRIPTOR, ring);
  add("capacity_zero", "No bytes at all.", from, "data_size", 0, DESCRIPTOR, ring);
  add("capacity_most", "Above the largest.", from, "data_size", 0x80000000, DESCRIPTOR, ring);
  add("start_odd", "A start between two frames.", from, "start", 8, DESCRIPTOR, "ring.start");
  const second = descriptorAt(2, 1);
  add("overlap_other", "Two rings share bytes.", "segment/two_rings", "data_offset", 1024, second);
  const unknown = "segment.unknown_kind segment.check";
  const odd = "segment/unknown_kind";
  add("unknown_beyond", "It ends behind the end.", odd, "data_size", 385, DESCRIPTOR, unknown);
  add("unknown_misaligned", "It is not aligned.", odd, "data_offset", 700, DESCRIPTOR, unknown);
}

function addEndpoints(cases: Cases): void {
  const taken = "segment.attach segment.check";
  const { bytes } = pipe({ states: [VACANT, VACANT] });
  const bell = (index: number): Expected => ({
    offset: recordAt(index),
    not: "00 00 00 00",
    about: `bell of ${index}`,
  });
  cases.valid({ ...attaching(bytes), role: "writer", channel: 0 }, {
    name: "attach_writer",
    about: "Endpoint 0 is taken; its bell and that of its peer were rung.",
    clauses: "segment.attach segment.state_change segment.state_ring segment.state_reason",
    bytes: [stateIs(0, ATTACHED), stateIs(1, VACANT), bell(0), bell(1)],
  });
  cases.valid({ ...attaching(bytes), role: "reader", channel: 0 }, {
    name: "attach_reader",
    about: "Endpoint 1 is taken; its bell and that of its peer, the writer, were rung.",
    clauses: "segment.attach segment.state_change segment.state_tries segment.state_ring",
    bytes: [stateIs(1, ATTACHED), stateIs(0, VACANT), bell(0), bell(1)],
  });
  const words = [["attached", ATTACHED], ["closed", CLOSED], ["unknown", 9]] as const;
  for (const [name, value] of words) {
    cases.invalid("segment/attach_writer", field(recordAt(0), "endpoint_record", "state", value), {
      name: `taken_${name}`,
      about: `The endpoint is not vacant: its state is ${name}.`,
      clauses: taken,
      result: "segment.endpoint",
      unchanged: true,
    });
  }
}

/** For each check a segment that fails it and all after it. */
function addOrder(cases: Cases): void {
  const spoil: [string, string, (bytes: Uint8Array) => void][] = [
    [
      "channel",
      "segment.channel",
      (bytes) => put(bytes, DESCRIPTOR, "channel_descriptor", "writer", 2),
    ],
    ["table", "segment.table", (bytes) => put(bytes, 0, HEADER, "endpoint_count", 300)],
    ["size", "segment.size", (bytes) => put(bytes, 0, HEADER, "size", 0x7fffff80)],
    ["feature", "segment.feature", (bytes) => put(bytes, 0, HEADER, "required_features", 1)],
    ["version", "segment.version", (bytes) => put(bytes, 0, HEADER, "version_major", 2)],
    ["magic", "segment.magic", (bytes) => put(bytes, 0, HEADER, "magic", new Uint8Array(8))],
    ["unready", "segment.unready", (bytes) => put(bytes, 0, HEADER, "ready", 1)],
  ];
  const { bytes } = buildSegment({ ...PIPE, states: [ATTACHED, ATTACHED] });
  for (const [name, code, change] of spoil) {
    change(bytes);
    cases.valid({ ...attaching(bytes), role: "writer", channel: 0 }, {
      name: `order_${name}`,
      about: `The check for ${code} fails, and so do all behind it: the first counts.`,
      clauses: "segment.check",
      result: code,
      unchanged: true,
    });
  }
  cases.invalid("segment/order_unready", field(0, HEADER, "ready", 77), {
    name: "order_ready",
    about: "A `ready` that nobody stores is no segment, whatever else is wrong.",
    clauses: "segment.check segment.await",
    result: "segment.magic",
    unchanged: true,
  });
}

function addPrivate(cases: Cases): void {
  const offset = DESCRIPTOR + fieldOf("channel_descriptor", "data_offset").offset;
  const operations = [{ set: [{ offset, hex: word(1088) }] }, { read: true } as const];
  const from = cases.valid(reading(pipe({ frames: [whole("hi")] }), { operations }), {
    name: "changed_behind_attach",
    about: "The descriptor changes once the reader has attached: it does not look there again.",
    clauses: "segment.private",
    results: ["ok", drained([message({ codec: 1, text: "hi" })])],
  });
  cases.invalid(from, field(DESCRIPTOR, "channel_descriptor", "data_offset", 1088), {
    name: "changed_before_attach",
    about: "The same change before the reader attaches is found.",
    clauses: "segment.private segment.check",
    result: "segment.channel",
  });
}

// What a creator writes: cases of `spec/segment.md`.

/** The example of the chapter. */
const EXAMPLE = fromChapter("segment", [
  "0000  4d 49 4c 4c 52 41 43 45  02 00 00 00 01 00 00 00",
  "0010  00 05 00 00 00 00 00 00  00 00 00 00 02 00 00 00",
  "0020  01 00 00 00",
  "0180  01 00 00 00 00 00 00 00  01 00 00 00 00 02 00 00",
  "0190  00 02 00 00 00 04 00 00  00 01 00 00 07 00 00 00",
]);

/** Adds them to the cases of the segment. */
function addCreate(cases: Cases): void {
  addFormat(cases);
  addWrite(cases);
  addRefused(cases);
  addSameGeometry(cases);
}

function creating(memory: Uint8Array, plan: SegmentPlan, more: Partial<Setting> = {}): Setting {
  const geometry = plan as NonNullable<Setting["geometry"]>;
  return { kind: "create", image: toImage(memory), role: "segment", geometry, ...more };
}

function garbage(size: number): Uint8Array {
  return new Uint8Array(size).fill(0xee).fill(0, 8, 12);
}

/** Everything before the first byte area. */
function formatted(plan: SegmentPlan, to: number) {
  const about = "all bytes that a creator writes";
  return imageIs(buildSegment(plan).bytes, 0, to, about);
}

function addFormat(cases: Cases): void {
  const { bytes } = buildSegment(PIPE);
  mustHold(bytes, 0, EXAMPLE);
  const all = "segment.claim segment.publish segment.place segment.size_limit segment.write " +
    "segment.claim_checked segment.same_geometry ring.start ring.capacity";
  const from = cases.valid(creating(new Uint8Array(1280), PIPE), {
    name: "create",
    about: "Blank memory becomes the example of the chapter.",
    clauses: all,
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
  const other = { ...PIPE, channels: [{ ...PIPE.channels[0]!, label: 0x01020304, start: 0x80 }] };
  cases.invalid(from, member("geometry", other), {
    name: "create_start",
    about: "With another label and start: both cursors begin there.",
    clauses: "segment.write segment.place segment.publish ring.start",
    result: "ok",
    bytes: formatted(other, 1024),
  });
  cases.valid(creating(garbage(1280), PIPE), {
    name: "create_on_garbage",
    about: "Blank means that `ready` is 0, whatever else stands there.",
    clauses: "segment.claim segment.publish segment.write ring.start",
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
  cases.valid(creating(new Uint8Array(1280).fill(0xee), PIPE, { sole_owner: true }), {
    name: "format_again",
    about: "The only owner of memory formats it, whatever it holds.",
    clauses: "segment.claim segment.write",
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
}

function addWrite(cases: Cases): void {
  const small: SegmentPlan = { endpoints: 1, channels: [] };
  cases.valid(creating(garbage(384), small), {
    name: "create_smallest",
    about: "One endpoint and no channel, in memory that held something else.",
    clauses: "segment.write segment.place",
    result: "ok",
    bytes: formatted(small, 256),
  });
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const three: SegmentPlan = {
    endpoints: 2,
    channels: [ring, { ...ring, start: 0xfffffff0 }, { ...ring, writer: 1, reader: 0 }],
  };
  const { bytes, channels } = buildSegment(three);
  const controls = channels.flatMap(({ control }) =>
    imageIs(bytes, control, control + 512, "control words, and what is between them")
  );
  cases.valid(creating(garbage(bytes.length), three), {
    name: "create_gap",
    about: "Between the tables, which end at 576, and the first area at 640 stands 0.",
    clauses: "segment.write segment.place ring.start",
    result: "ok",
    bytes: [...imageIs(bytes, 0, 640, "header and tables"), ...controls],
  });
}

function addRefused(cases: Cases): void {
  const refused = { result: "segment.size", unchanged: true } as const;
  const from = "segment/create";
  const clauses = "segment.size_limit segment.claim_checked";
  cases.invalid(from, member("image.size", 1152), {
    name: "create_too_small",
    about: "The memory is smaller than the geometry takes; it stays blank.",
    clauses: `${clauses} segment.place`,
    ...refused,
  });
  const huge = { writer: 0, reader: 1, capacity: 2 ** 30 };
  cases.invalid(from, member("geometry.channels", [huge, huge, huge, huge]), {
    name: "create_too_large",
    about: "The geometry takes more than any segment may have; the memory stays blank.",
    clauses,
    ...refused,
  });
  cases.invalid(from, member("memory_offset", 64), {
    name: "create_misaligned",
    about: "The memory begins at an odd multiple of 64; it stays blank.",
    clauses: "segment.align segment.claim_checked",
    ...refused,
  });
  cases.invalid(from, field(0, HEADER, "ready", 1), {
    name: "create_while_formatting",
    about: "Another creator has claimed the memory, and has not finished.",
    clauses: "segment.claim segment.publish segment.await",
    result: "segment.unready",
    unchanged: true,
  });
}

function addSameGeometry(cases: Cases): void {
  const plan: SegmentPlan = {
    endpoints: 3,
    channels: [{ writer: 0, reader: 1, capacity: 256, label: 7, start: 16 }],
  };
  const memory = Uint8Array.of(...buildSegment(plan).bytes, ...new Uint8Array(1024));
  const from = cases.valid(creating(memory, plan), {
    name: "create_again",
    about: "The other side came first, with the same geometry.",
    clauses: "segment.same_geometry segment.claim",
    result: "ok",
    unchanged: true,
  });
  // Another one that has put the same areas elsewhere, with 128 bytes to spare.
  const apart = buildSegment({
    ...plan,
    channels: [{ ...plan.channels[0]!, data_offset: 1280 }],
    extra: 128,
  });
  const elsewhere = cases.valid(
    creating(Uint8Array.of(...apart.bytes, ...new Uint8Array(1024)), plan),
    {
      name: "create_again_elsewhere",
      about: "The other side came first, and has placed the same geometry otherwise.",
      clauses: "segment.same_geometry",
      result: "ok",
      unchanged: true,
    },
  );
  cases.invalid(elsewhere, field(descriptorAt(3, 0), "channel_descriptor", "control_size", 640), {
    name: "create_other_control",
    about: "Its ring has more control words than this version's.",
    clauses: "segment.same_geometry",
    result: "segment.geometry",
    unchanged: true,
  });
  const changes: [string, string, unknown][] = [
    ["endpoints", "endpoints", 2],
    ["writer", "channels.0.writer", 2],
    ["reader", "channels.0.reader", 2],
    ["capacity", "channels.0.capacity", 512],
    ["label", "channels.0.label", 8],
    ["start", "channels.0.start", 32],
  ];
  for (const [name, path, value] of changes) {
    cases.invalid(from, member(`geometry.${path}`, value), {
      name: `create_other_${name}`,
      about: `The other side came first, and its geometry differs: ${name}.`,
      clauses: "segment.same_geometry",
      result: "segment.geometry",
      unchanged: true,
    });
  }
}

// Who is whose peer, and channels of unknown kinds: cases of `spec/segment.md`.

const PEERS_DESCRIPTOR = "channel_descriptor";
const RING: ChannelPlan = { writer: 0, reader: 1, capacity: 256 };
const OTHER: ChannelPlan = { writer: 0, reader: 1, capacity: 128, control_size: 0, kind: 9 };
const BELL = 0x10;

/** Adds them to the cases of the segment. */
function addPeers(cases: Cases): void {
  addEnds(cases);
  addRung(cases);
  addMarked(cases);
  addProperty(cases);
}

/** A property, to those who do not offer them. */
function addProperty(cases: Cases): void {
  const segment = property({
    channel: { name: "gain" },
    behind: [RING],
    version: 5,
    watchers: [0, 1, 9],
    slots: { 1: { sequence: 5, codec: 1, value: "half" } },
  });
  fillRing(segment, 1, [whole("hi")]);
  const image = toImage(segment.bytes);
  cases.valid({ kind: "read", image, role: "reader", operations: [{ read: true }] }, {
    name: "property_beside",
    about: "A ring is found behind a property, which whoever does not offer them leaves alone.",
    clauses: "segment.unknown_kind segment.peers pipe.find",
    results: [drained([text("hi")])],
    bytes: areasAre(segment),
  });
}

function attachingPeers(plan: SegmentPlan, more: Partial<Setting> = {}): Setting {
  const image = toImage(buildSegment(plan).bytes);
  return { kind: "attach", image, role: "segment", ...more };
}

/** Which ends a channel may have. */
function addEnds(cases: Cases): void {
  const clauses = "segment.unknown_kind segment.check";
  const ok = { result: "ok", unchanged: true } as const;
  const refused = { result: "segment.channel", unchanged: true } as const;
  const ends: [string, string, number, number][] = [
    ["nobody", "No endpoint writes it, and none reads it.", NOBODY, NOBODY],
    ["no_reader", "Nobody, or everybody, reads it.", 1, NOBODY],
    ["no_writer", "Nobody, or everybody, writes it.", NOBODY, 0],
    ["itself", "It leads from an endpoint to the same.", 1, 1],
    ["beyond", "Its ends are no endpoints of the segment.", 2, 0xfffffffe],
  ];
  for (const [name, about, writer, reader] of ends) {
    const plan = { endpoints: 2, channels: [RING, { ...RING, kind: 9, writer, reader }] };
    const from = cases.valid(attachingPeers(plan), { name: `ends_${name}`, about, clauses, ...ok });
    cases.invalid(from, field(descriptorAt(2, 1), PEERS_DESCRIPTOR, "kind", 1), {
      name: `ring_ends_${name}`,
      about: "A ring has one endpoint that writes and another one that reads.",
      clauses,
      ...refused,
    });
  }
}

/** Endpoint 0 has a ring to 1; other channels join it with 2, with nobody, with itself. */
const PEERS: SegmentPlan = {
  endpoints: 5,
  channels: [
    RING,
    { ...OTHER, writer: 2, reader: 0 },
    { ...OTHER, writer: 3, reader: NOBODY, kind: 2 },
    { ...OTHER, writer: 0, reader: 0 },
    { ...OTHER, writer: NOBODY, reader: 0, kind: 0 },
    { ...OTHER, writer: 0, reader: 5 },
  ],
  states: [VACANT, VACANT],
  records: Array.from({ length: 5 }, () => ({ bell: BELL })),
};

/** Whose bells have moved, and, with the bit of the endpoint that attached, whose `rung`. */
function rang(by: number, ...endpoints: number[]): Expected[] {
  return Array.from(
    { length: 5 },
    (_, index) =>
      endpoints.includes(index)
        ? [bellIsNot(index, BELL), rungIs(index, by)]
        : [bellIs(index, BELL), rungIs(index)],
  ).flat();
}

function addRung(cases: Cases): void {
  const clauses = "segment.peers segment.state_ring segment.attach wait.rung";
  const setting = attachingPeers(PEERS, { role: "writer", channel: 0 });
  const from = cases.valid(setting, {
    name: "peers",
    about:
      "Endpoint 0 attaches: its peers by a ring and by an unknown kind are rung, and nobody else.",
    clauses,
    bytes: [stateIs(0, ATTACHED), ...rang(0, 0, 1, 2)],
  });
  const add = (
    name: string,
    about: string,
    index: number,
    key: string,
    value: number,
    at: number[],
  ) =>
    cases.invalid(from, field(descriptorAt(5, index), PEERS_DESCRIPTOR, key, value), {
      name: `peers_${name}`,
      about,
      clauses,
      bytes: [stateIs(0, ATTACHED), ...rang(0, ...at)],
    });
  const none = "Endpoint 2 writes a channel that names nobody else.";
  add("nobody", none, 1, "reader", NOBODY, [0, 1]);
  add("beyond", "It names an endpoint that is none.", 1, "reader", 5, [0, 1]);
  add("other", "Endpoint 3 reads it.", 1, "reader", 3, [0, 1]);
  add("more", "Endpoint 3 is joined as well.", 2, "reader", 0, [0, 1, 2, 3]);
  add("writes", "Endpoint 4 is joined by what endpoint 0 writes.", 5, "reader", 4, [0, 1, 2, 4]);
}

/** A reader marks and closes: the peers of the endpoint whose state is to change are rung. */
function addMarked(cases: Cases): void {
  const states = [ATTACHED, VACANT];
  const segment = buildSegment({ ...PEERS, states });
  fillRing(segment, 0, [whole("hi")]);
  const clear: Operation[] = [0, 1, 2, 3, 4].map((index) =>
    setRecord(index, { bell: BELL, rung: new Uint8Array(fieldOf("endpoint_record", "rung").size) })
  );
  const operations: Operation[] = [...clear, { read: true }];
  const setting: Setting = {
    kind: "read",
    image: toImage(segment.bytes),
    role: "reader",
    channel: 0,
    operations,
  };
  const clauses = "segment.peers segment.state_ring ring.fault ring.fault_stop wait.rung";
  const before = clear.map(() => "ok");
  const from = cases.valid(setting, {
    name: "peers_read",
    about: "A reader reads: nobody is rung, for nobody asks.",
    clauses,
    results: [...before, drained([text("hi")])],
    bytes: [stateIs(0, ATTACHED), ...rang(0)],
  });
  cases.invalid(from, field(segment.channels[0]!.data, "frame_header", "kind", 7), {
    name: "peers_marked",
    about: "It finds a fault: endpoint 0 is marked, and it and its peers are rung, with its bit.",
    clauses,
    results: [...before, drained([], "frame.kind")],
    bytes: [stateIs(0, failed("frame.kind")), ...rang(0, 0, 1, 2)],
  });
  cases.invalid(from, member("operations.5", { close: true }), {
    name: "peers_closed",
    about: "It closes: it and endpoint 0 are rung, with its own bit.",
    clauses,
    results: [...before, "ok"],
    bytes: [stateIs(1, 2), ...rang(1, 0, 1)],
  });
  const offset = recordAt(0) + fieldOf("endpoint_record", "state").offset;
  const about = "A fault of an endpoint that has closed: nothing changes, and all are rung.";
  const broken = structuredClone(segment.bytes);
  broken[segment.channels[0]!.data + 4] = 7;
  const gone: Operation[] = [{ set: [{ offset, hex: word(2) }] }, ...operations];
  cases.valid({ ...setting, image: toImage(broken), operations: gone }, {
    name: "peers_marked_closed",
    about,
    clauses,
    results: ["ok", ...before, drained([], "frame.kind")],
    bytes: [stateIs(0, 2), ...rang(0, 0, 1, 2)],
  });
}
