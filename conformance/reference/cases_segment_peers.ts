/** Who is whose peer, and channels of unknown kinds: cases of `spec/segment.md`. @module */

import { ATTACHED, bellIs, bellIsNot, Cases, drained, field, member } from "./builder.ts";
import { rungIs, setRecord, stateIs, text, VACANT, whole } from "./builder.ts";
import { areasAre, property } from "./builder_property.ts";
import { toImage, word } from "./bytes.ts";
import type { Expected, Operation, Setting } from "./case.ts";
import { buildSegment, type ChannelPlan, descriptorAt, failed, fillRing } from "./encode.ts";
import { NOBODY, recordAt, type SegmentPlan } from "./encode.ts";
import { fieldOf } from "./layout.ts";

const DESCRIPTOR = "channel_descriptor";
const RING: ChannelPlan = { writer: 0, reader: 1, capacity: 256 };
const OTHER: ChannelPlan = { writer: 0, reader: 1, capacity: 128, control_size: 0, kind: 9 };
const BELL = 0x10;

/** Adds them to the cases of the segment. */
export function addPeers(cases: Cases): void {
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

function attaching(plan: SegmentPlan, more: Partial<Setting> = {}): Setting {
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
    const from = cases.valid(attaching(plan), { name: `ends_${name}`, about, clauses, ...ok });
    cases.invalid(from, field(descriptorAt(2, 1), DESCRIPTOR, "kind", 1), {
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
  const setting = attaching(PEERS, { role: "writer", channel: 0 });
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
    cases.invalid(from, field(descriptorAt(5, index), DESCRIPTOR, key, value), {
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
