/** The cases of `spec/segment.md`. @module */

import { toImage, word } from "./bytes.ts";
import type { Expected, Setting } from "./case.ts";
import { addPeers } from "./cases_segment_peers.ts";
import { addCreate } from "./cases_segment_create.ts";
import { addStates } from "./cases_segment_state.ts";
import { addVacate } from "./cases_vacate.ts";
import { buildSegment, descriptorAt, NOBODY, put, recordAt, type SegmentPlan } from "./encode.ts";
import { fieldOf } from "./layout.ts";
import { ATTACHED, Cases, CLOSED, drained, field, member, message, pipe } from "./builder.ts";
import { reading, stateIs, VACANT, whole } from "./builder.ts";

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

/** For each check a segment that fails it and all behind it. */
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
