/** The cases of `spec/port.md`. @module */

import { ATTACHED, bytesOf, Cases, CLOSED, drained, endFrame, field, member } from "../builder.ts";
import { message, setState, stateIs, text, VACANT, whole } from "../builder.ts";
import { toHex, toImage, word } from "../bytes.ts";
import type { Item, Operation, Setting } from "../case.ts";
import { buildFrame, buildSegment, descriptorAt, failed, fillRing } from "../encode.ts";
import { type FramePlan, recordAt, type Segment, type SegmentPlan } from "../encode.ts";

const PORT: SegmentPlan = {
  endpoints: 2,
  channels: [
    { writer: 0, reader: 1, capacity: 256 },
    { writer: 1, reader: 0, capacity: 1024 },
  ],
};

/** All cases of this noun. */
export function portCases(): Cases {
  const cases = new Cases("port");
  addLayout(cases);
  addFind(cases);
  addHub(cases);
  addBothWays(cases);
  addInbox(cases);
  return cases;
}

/** Endpoint 1 of a port, to which endpoint 0 has written these frames. */
function port(frames: FramePlan[], plan: SegmentPlan = PORT): Segment {
  const segment = buildSegment({ states: [ATTACHED, VACANT], ...plan });
  fillRing(segment, 0, frames);
  return segment;
}

/** The setting in which endpoint 1 uses the port; the kit takes from channel 1. */
function using({ bytes }: Segment, operations?: Operation[], more: Partial<Setting> = {}): Setting {
  const common = { image: toImage(bytes), role: "port", endpoint: 1, channel: 1 } as const;
  return operations === undefined
    ? { kind: "attach", ...common, ...more }
    : { kind: "read", ...common, limit: 4096, operations, ...more };
}

function addLayout(cases: Cases): void {
  const { bytes } = buildSegment(PORT);
  const geometry = PORT as NonNullable<Setting["geometry"]>;
  cases.valid({
    kind: "create",
    image: toImage(new Uint8Array(bytes.length)),
    role: "segment",
    geometry,
  }, {
    name: "example",
    about: "The example of the chapter: rings of 256 and 1,024 bytes.",
    clauses: "port.layout segment.place",
    result: "ok",
    bytes: [
      { offset: 0, hex: toHex(bytes.slice(0, 512)), about: "header and tables" },
      {
        offset: 448,
        hex: "01 00 00 00 01 00 00 00  00 00 00 00 00 05 00 00 " +
          "00 02 00 00 00 07 00 00  00 04 00 00 00 00 00 00",
        about: "the second descriptor, as the chapter shows it",
      },
    ],
  });
}

function addFind(cases: Cases): void {
  const plain = using(port([]));
  cases.valid(plain, {
    name: "attach",
    about: "Endpoint 1 of a port.",
    clauses: "port.find_none port.layout port.find",
    result: "ok",
    bytes: [stateIs(1, ATTACHED)],
  });
  const refused = { result: "segment.channel", unchanged: true } as const;
  const changes: [string, string, number, string, number][] = [
    ["no_outgoing", "Endpoint 1 writes no ring: the channel has another kind.", 1, "kind", 2],
    ["no_incoming", "Endpoint 1 reads no ring: the channel has another kind.", 0, "kind", 9],
  ];
  for (const [name, about, index, key, value] of changes) {
    cases.invalid("port/attach", field(descriptorAt(2, index), "channel_descriptor", key, value), {
      name,
      about,
      clauses: "port.find_none port.layout port.find",
      ...refused,
    });
  }
  const three: SegmentPlan = { endpoints: 3, channels: PORT.channels };
  cases.valid(using(port([], three)), {
    name: "attach_of_three",
    about: "A third endpoint does not matter.",
    clauses: "port.find_none port.find",
    result: "ok",
    bytes: [stateIs(1, ATTACHED)],
  });
  const empty = { endpoints: 2, channels: [{ ...PORT.channels[0]!, kind: 9 }] };
  cases.valid(using(buildSegment(empty)), {
    name: "no_rings",
    about: "There is no ring at all; the endpoint is vacant.",
    clauses: "port.find_none",
    ...refused,
  });
  cases.invalid("port/no_rings", field(recordAt(1), "endpoint_record", "state", ATTACHED), {
    name: "no_rings_taken",
    about: "Nor is the endpoint vacant, which is found first.",
    clauses: "port.find_none segment.check",
    result: "segment.endpoint",
    unchanged: true,
  });
  cases.invalid(
    "port/attach_of_three",
    field(descriptorAt(3, 0), "channel_descriptor", "writer", 2),
    {
      name: "other_peers",
      about: "Endpoint 1 reads from endpoint 2, and writes to endpoint 0.",
      clauses: "port.find_none port.find",
      ...refused,
    },
  );
  cases.invalid("port/attach", field(recordAt(1), "endpoint_record", "state", CLOSED), {
    name: "taken",
    about: "The endpoint is not vacant.",
    clauses: "segment.attach",
    result: "segment.endpoint",
    unchanged: true,
  });
  const odd: SegmentPlan = {
    endpoints: 2,
    channels: [
      { writer: 0, reader: 1, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256, kind: 9 },
      { writer: 1, reader: 0, capacity: 256 },
      { writer: 1, reader: 0, capacity: 256 },
    ],
  };
  const write: Operation[] = [{ write: { text: "x" } }, { take: true }];
  const from = cases.valid(using(port([], odd), write, { channel: 2 }), {
    name: "first_ring",
    about: "Behind a channel of another kind, the first ring counts.",
    clauses: "port.find",
    results: ["ok", drained([message({ text: "x" })])],
  });
  cases.invalid(from, member("channel", 3), {
    name: "not_second_ring",
    about: "Nothing comes through the second.",
    clauses: "port.find",
    results: ["ok", drained([])],
  });
}

/** The second client of a hub: endpoint 2, which reads channel 2 and writes channel 3. */
function addHub(cases: Cases): void {
  const channel = (writer: number, reader: number) => ({ writer, reader, capacity: 256 });
  const hub = buildSegment({
    endpoints: 3,
    channels: [channel(0, 1), channel(1, 0), channel(0, 2), channel(2, 0)],
    states: [ATTACHED, ATTACHED, VACANT],
  });
  fillRing(hub, 2, [whole("hi")]);
  const echo: Operation[] = [{ read: true }, { write: { text: "back" } }, { take: true }];
  cases.valid(using(hub, echo, { endpoint: 2, channel: 3 }), {
    name: "hub_client",
    about: "The second client of a hub reads its channel and writes its own.",
    clauses: "port.hub_layout port.find",
    results: [drained([text("hi")]), "ok", drained([message({ text: "back" })])],
  });
  cases.invalid("port/hub_client", field(descriptorAt(3, 2), "channel_descriptor", "reader", 1), {
    name: "hub_client_without",
    about: "Channel 2 leads to the first client too, so the second has nothing to read.",
    clauses: "port.hub_layout port.find_none",
    result: "segment.channel",
    unchanged: true,
  });
}

function addBothWays(cases: Cases): void {
  const hi = text("hi");
  const echo: Operation[] = [{ read: true }, { write: { text: "back" } }, { take: true }];
  cases.valid(using(port([whole("hi")]), echo), {
    name: "both_ways",
    about: "One message each way.",
    clauses: "port.find port.publish_both",
    results: [drained([hi]), "ok", drained([message({ text: "back" })])],
  });
  const plan = port([whole("hi"), whole("hi")]);
  const good = cases.valid(using(plan, [{ read: true }, { write: { text: "x" } }]), {
    name: "read_and_write",
    about: "Two messages are read, one is written.",
    clauses: "ring.fault ring.fault_stop pipe.first_answer",
    results: [drained([hi, hi]), "ok"],
    bytes: [stateIs(0, ATTACHED)],
  });
  cases.invalid(good, field(plan.channels[0]!.data + 32, "frame_header", "kind", 7), {
    name: "fault_and_write",
    about: "A fault in one direction: in the other the peer is one that has failed.",
    clauses: "ring.fault ring.fault_stop pipe.first_answer pipe.failed_reason",
    results: [drained([hi], "frame.kind"), { code: "peer.failed", reason: "frame.kind" }],
    bytes: [stateIs(0, failed("frame.kind"))],
  });
  const operations: Operation[] = [{ write: { text: "x" } }, { read: true }, { take: true }];
  const ended = cases.valid(using(port([whole("hi"), endFrame()]), operations), {
    name: "write_and_read",
    about: "A port that writes, and reads.",
    clauses: "port.end",
    results: ["ok", drained([hi], "ended"), drained([message({ text: "x" })])],
  });
  cases.invalid(ended, member("operations.0", { end: true }), {
    name: "end_and_read",
    about: "A port that has ended its outgoing pipe goes on reading.",
    clauses: "port.end pipe.end",
    results: ["ok", drained([hi], "ended"), drained([], "ended")],
  });
  const closing: Operation[] = [
    { read: true },
    { close: true },
    { write: { text: "x" } },
    { read: true },
  ];
  const closed = cases.valid(using(port([whole("hi")]), closing), {
    name: "close",
    about: "One change of the state closes both directions.",
    clauses: "port.close pipe.close pipe.close_stores",
    results: [drained([hi]), "ok", "pipe.closed", drained([], "pipe.closed")],
    bytes: [stateIs(1, CLOSED)],
  });
  cases.invalid(closed, member("operations.1", { publish: true }), {
    name: "not_closed",
    about: "Without the close, both go on.",
    clauses: "port.close",
    results: [drained([hi]), "ok", "ok", drained([])],
    bytes: [stateIs(1, ATTACHED)],
  });
  const gone: Operation[] = [
    { set: [{ offset: recordAt(0) + 4, hex: word(ATTACHED) }] },
    { read: true },
    { write: { text: "x" } },
  ];
  const there = cases.valid(using(port([whole("hi")]), gone), {
    name: "peer_there",
    about: "The peer is attached.",
    clauses: "pipe.peer_gone pipe.drain",
    results: ["ok", drained([hi]), "ok"],
  });
  cases.invalid(there, member("operations.0.set.0.hex", word(failed("peer.lost"))), {
    name: "peer_failed",
    about: "The peer has failed: both directions say so, what it wrote is read.",
    clauses: "pipe.peer_gone pipe.drain",
    results: ["ok", drained([hi], "peer.failed", "peer.lost"), "peer.failed"],
  });
}

/** What waits in the inbox comes before everything but the own close. */
function addInboxAnswers(cases: Cases, from: string, data: number): void {
  const before = ["ok", "ok", "wait.timeout", "ok"];
  const some = [text("one"), text("two")];
  const written = drained([message(bytesOf(112)), message(bytesOf(96))]);
  const add = (name: string, about: string, operation: Operation, items: Item[], end: string) =>
    cases.invalid(from, member("operations.3", operation), {
      name: `inbox_${name}`,
      about,
      clauses: "port.inbox_order pipe.first_answer",
      results: [...before, drained(items, end), written],
    });
  add("own_close", "The own close drops the inbox.", { close: true }, [], "pipe.closed");
  const own = "This endpoint is marked meanwhile: the inbox comes first.";
  add("own_failed", own, setState(1, failed("peer.lost")), some, "pipe.failed");
  const peer = "The peer closes meanwhile: the inbox comes first.";
  add("peer_closed", peer, setState(0, CLOSED), some, "peer.closed");
  cases.invalid(from, field(data + 32, "frame_header", "kind", 7), {
    name: "inbox_fault",
    about: "The second message is broken: the write ends, and the fault stands behind the first.",
    clauses:
      "port.inbox port.inbox_fault port.inbox_order pipe.first_answer ring.fault ring.fault_stop",
    results: [
      "ok",
      "ok",
      { code: "peer.failed", reason: "frame.kind" },
      "ok",
      drained([text("one")], "frame.kind"),
      written,
    ],
    bytes: [stateIs(0, failed("frame.kind"))],
  });
}

function addInbox(cases: Cases): void {
  const small: SegmentPlan = {
    endpoints: 2,
    channels: [{ writer: 0, reader: 1, capacity: 256 }, { writer: 1, reader: 0, capacity: 256 }],
  };
  const segment = port([whole("one"), whole("two")], small);
  const { data, control } = segment.channels[0]!;
  const third = buildFrame(whole("three"));
  const operations: Operation[] = [
    { write: bytesOf(112) },
    { write: bytesOf(96) },
    { write: { text: "no room" }, wait: true },
    { set: [{ offset: data + 64, hex: toHex(third) }, { offset: control, hex: word(96) }] },
    { read: true },
    { take: true },
  ];
  const written = drained([message(bytesOf(112)), message(bytesOf(96))]);
  const [one, two, three] = [text("one"), text("two"), text("three")] as const;
  const before = ["ok", "ok", "wait.timeout", "ok"];
  const clauses = "port.inbox_order port.inbox_fault";
  const from = cases.valid(using(segment, operations), {
    name: "inbox",
    about:
      "Messages that came while a write waited for room are read before the one that came later.",
    clauses,
    results: [...before, drained([one, two, three]), written],
  });
  cases.invalid(from, field(data + 32, "frame_header", "kind", 3), {
    name: "inbox_report",
    about: "One of them is lost: that is reported in its place.",
    clauses,
    results: [...before, drained([one, { report: "message.kind" }, three]), written],
  });
  addInboxAnswers(cases, from, data);
  const waiting: Operation[] = [{ peek: true }, { release: true }, ...operations.slice(0, 3)];
  const borrowed = { items: [one] };
  const released = cases.valid(using(segment, waiting), {
    name: "lent_and_released",
    about:
      "A message is borrowed and given back; a write that waits gives back all that was released.",
    clauses: "pipe.lend port.publish_both ring.release_all",
    results: [borrowed, "ok", "ok", "ok", "wait.timeout"],
    bytes: [{ offset: control + 128, hex: word(64), about: "head" }],
  });
  cases.invalid(released, member("operations.1", { publish: true }), {
    name: "lent",
    about: "It is not given back: its room stays the reader's, also while a write waits.",
    clauses: "pipe.lend port.publish_both ring.release_all",
    results: [borrowed, "ok", "ok", "ok", "wait.timeout"],
    bytes: [{ offset: control + 128, hex: word(0), about: "head" }],
  });
  const finishing: Operation[] = [
    { claim: { text: "held" }, size: 4, abandon: false },
    { read: true },
    { take: true },
  ];
  const held = cases.valid(using(port([], small), finishing), {
    name: "publish_before_read",
    about: "A message that is finished and not published becomes visible before a read waits.",
    clauses: "port.publish_both ring.publish_all",
    results: ["ok", drained([]), drained([message({ text: "held" })])],
  });
  cases.invalid(held, member("operations.0.abandon", true), {
    name: "abandon_before_read",
    about: "What was given up does not.",
    clauses: "port.publish_both ring.publish_all",
    results: ["ok", drained([]), drained([])],
  });
}
