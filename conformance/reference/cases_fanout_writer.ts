/** The cases of `spec/fanout.md`: its writer in mode `hold`. @module */

import {
  ATTACHED,
  bellIs,
  bytesOf,
  type Cases,
  CLOSED,
  drained,
  field,
  member,
} from "./builder.ts";
import { message, setState, stateIs, VACANT } from "./builder.ts";
import { controlIs, fanout, joined, JOINING, recordIs, recordOf } from "./builder_fanout.ts";
import { storesHead, writes } from "./builder_fanout.ts";
import { word } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { failed, recordAt } from "./encode.ts";

const READER = "fanout_reader";
const STATES = [VACANT, ATTACHED, ATTACHED];
const take: Operation = { take: true };
const large: Operation = { write: bytesOf(112) };
const small: Operation = { write: bytesOf(80) };

/** Adds them. */
export function addFanoutWriter(cases: Cases): void {
  addWrites(cases);
  addRoom(cases);
  addReserve(cases);
  addHeads(cases);
  addGone(cases);
  addRings(cases);
}

function addWrites(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0)] });
  const ends: Operation[] = [large, take, small, { write: bytesOf(64) }, { end: true }, take];
  const all = drained([message(bytesOf(80)), message(bytesOf(64))], "ended");
  const from = cases.valid(writes(plan, [...ends, { end: true }, small]), {
    name: "write",
    about: "Whole messages, a pad where one does not fit, and `end`; a second `end` does nothing.",
    clauses: "fanout.writer fanout.ended fanout.whole fanout.size fanout.room fanout.number",
    results: [
      "ok",
      drained([message(bytesOf(112))]),
      "ok",
      "ok",
      "ok",
      all,
      "ok",
      "pipe.ended",
    ],
    bytes: [
      controlIs(plan, "tail", 352),
      controlIs(plan, "floor", 0),
      controlIs(plan, "ended", 353),
    ],
  });
  cases.invalid(from, member("operations", [large, take, small]), {
    name: "write_not_ended",
    about: "It does not end.",
    clauses: "fanout.ended",
    results: ["ok", drained([message(bytesOf(112))]), "ok"],
    bytes: [controlIs(plan, "ended", 0)],
  });
  cases.invalid(from, member("operations.0", { write: bytesOf(113) }), {
    name: "write_large",
    about: "The largest frame is half the capacity: one byte more is refused.",
    clauses: "fanout.size fanout.whole",
    results: [
      "message.size",
      drained([]),
      "ok",
      "ok",
      "ok",
      all,
      "ok",
      "pipe.ended",
    ],
  });
  cases.invalid(from, member("operations.0", { write: bytesOf(300), wait: true }), {
    name: "write_wait_large",
    about: "Nor does a call that may wait cut it.",
    clauses: "fanout.size fanout.whole",
    results: ["message.size", drained([]), "ok", "ok", "ok", all, "ok", "pipe.ended"],
  });
  cases.invalid(from, member("operations.3", { write: bytesOf(16) }), {
    name: "write_no_pad",
    about: "A frame of 80 bytes ends with the byte area: no pad.",
    clauses: "fanout.writer fanout.room",
    results: [
      "ok",
      drained([message(bytesOf(112))]),
      "ok",
      "ok",
      "ok",
      drained([message(bytesOf(80)), message(bytesOf(16))], "ended"),
      "ok",
      "pipe.ended",
    ],
    bytes: [controlIs(plan, "tail", 272)],
  });
}

/** The last 16 bytes are for `end`, which then finds its room. */
function addReserve(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0)] });
  const from = cases.valid(writes(plan, [large, { write: bytesOf(96) }, { end: true }]), {
    name: "filled",
    about: "Frames of 240 bytes leave the room of `end`, in an area of 256.",
    clauses: "fanout.room fanout.writer",
    results: ["ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 256)],
  });
  cases.invalid(from, member("operations.1", large), {
    name: "filled_whole",
    about: "The second frame would leave none.",
    clauses: "fanout.room",
    results: ["ok", "full", "ok"],
    bytes: [controlIs(plan, "tail", 144)],
  });
}

/** Who holds the writer back. */
function addRoom(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const operations: Operation[] = [large, small, storesHead(plan, 0, joined(224)), small];
  const from = cases.valid(writes(plan, operations), {
    name: "held_back",
    about: "One reader has read all, the other one nothing: there is no room.",
    clauses: "fanout.room fanout.count fanout.no_readers",
    results: ["ok", "ok", "ok", "full"],
    bytes: [
      controlIs(plan, "tail", 224),
      recordIs(plan, 1, "writer_wants", 0),
      stateIs(2, ATTACHED),
    ],
  });
  const goes = {
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED)],
  };
  const free = (name: string, about: string, clauses: string, head: number) =>
    cases.invalid(from, field(recordOf(plan, 1), READER, "head", head), {
      name,
      about,
      clauses,
      ...goes,
    });
  free("held_left", "The other has left.", "fanout.count fanout.no_readers", 0);
  const state = (name: string, about: string, value: number) =>
    cases.invalid(from, field(recordAt(2), "endpoint_record", "state", value), {
      name,
      about,
      clauses: "fanout.count fanout.gone fanout.no_readers",
      ...goes,
    });
  state("held_vacant", "The other has not attached.", VACANT);
  state("held_closed", "The other has closed.", CLOSED);
  state("held_failed", "The other was marked failed.", failed("peer.lost"));
  state("held_invalid", "The state of the other is none that there is.", 9);
  cases.invalid(from, field(recordOf(plan, 1), READER, "head", JOINING), {
    name: "held_joining",
    about: "The other is about to join: what it begins at is at least the first position.",
    clauses: "fanout.count fanout.room",
    results: ["ok", "ok", "ok", "full"],
    bytes: [stateIs(2, ATTACHED), recordIs(plan, 1, "head", JOINING)],
  });
  cases.invalid(
    from,
    member("operations.2", {
      set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(128)) })),
    }),
    {
      name: "held_both",
      about: "Both have given back the first message.",
      clauses: "fanout.room",
      ...goes,
    },
  );
  cases.invalid(from, member("operations.3", { write: bytesOf(80), wait: true }), {
    name: "held_and_timed_out",
    about: "A call that waits gives up at its deadline, and asks for nothing any more.",
    clauses: "fanout.room",
    results: ["ok", "ok", "ok", "wait.timeout"],
    bytes: [controlIs(plan, "tail", 224), recordIs(plan, 1, "writer_wants", 0)],
  });
  const nobody = fanout({ states: STATES });
  cases.valid(writes(nobody, [large, small, small, large]), {
    name: "nobody",
    about: "Nobody has joined: nobody holds the writer back.",
    clauses: "fanout.no_readers fanout.count",
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(nobody, "tail", 480)],
  });
}

/** What a reader may store, and what not. */
function addHeads(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const both = (first: number, second: number): Operation => ({
    set: [first, second].map((head, index) => ({
      offset: recordOf(plan, index),
      hex: word(head),
    })),
  });
  const operations = [large, small, both(joined(224), joined(128)), small];
  const from = cases.valid(writes(plan, operations), {
    name: "heads",
    about: "Both readers give back what they have read.",
    clauses: "fanout.head fanout.head_fault",
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
  });
  const fault = (name: string, about: string, head: number) =>
    cases.invalid(from, member("operations.2", both(joined(224), head)), {
      name,
      about,
      clauses: "fanout.head fanout.head_fault",
      results: ["ok", "ok", "ok", "ok"],
      bytes: [
        controlIs(plan, "tail", 352),
        stateIs(1, ATTACHED),
        stateIs(2, failed("ring.cursor")),
      ],
    });
  fault("head_beyond", "One states a position that was not published.", joined(240));
  fault("head_behind", "One states a position behind where it began.", joined(0xfffffff0));
  fault("head_far", "One states a position that is half of all away.", joined(0x80000000));
  fault("head_odd", "One states no multiple of 16.", joined(136));
  fault("head_bit", "One states a position without bit 0.", 128);
  fault("head_unknown", "One states 3.", 3);
  const twice = cases.valid(
    writes(plan, [...operations, both(joined(352), joined(352)), small, large]),
    {
      name: "heads_twice",
      about: "A reader gives room back twice.",
      clauses: "fanout.head",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
      bytes: [stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(twice, member("operations.4", both(joined(352), joined(0))), {
    name: "head_back",
    about: "The second time it goes back, and is counted no more.",
    clauses: "fanout.head fanout.head_fault fanout.gone",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
    bytes: [stateIs(2, failed("ring.cursor")), controlIs(plan, "tail", 448)],
  });
}

/** A reader that is gone does not come back. */
function addGone(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const first = storesHead(plan, 0, joined(224));
  const further = storesHead(plan, 0, joined(352));
  const operations = [large, small, first, setState(2, CLOSED), small];
  const from = cases.valid(writes(plan, [...operations, setState(2, ATTACHED), further, large]), {
    name: "gone",
    about: "A reader that has closed is not counted, also when its state says otherwise later.",
    clauses: "fanout.gone fanout.no_readers",
    results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 480), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
  });
  const back: Operation = {
    set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(352)) })),
  };
  cases.invalid(
    from,
    member("operations", [
      ...operations,
      setState(2, ATTACHED),
      back,
      large,
      storesHead(plan, 0, joined(480)),
      large,
    ]),
    {
      name: "gone_reads",
      about: "Later it has even read all that is there: it does not hold the writer back.",
      clauses: "fanout.gone",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(
    from,
    member("operations", [
      large,
      small,
      first,
      storesHead(plan, 1, joined(240)),
      small,
      setState(2, ATTACHED),
      back,
      large,
      storesHead(plan, 0, joined(480)),
      large,
    ]),
    {
      name: "gone_fault",
      about: "It was marked for its `head`, and then its words are as they should be.",
      clauses: "fanout.gone fanout.head_fault",
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(from, member("operations.3", setState(2, ATTACHED)), {
    name: "not_gone",
    about: "It was there all the time.",
    clauses: "fanout.gone fanout.count",
    results: ["ok", "ok", "ok", "ok", "full", "ok", "ok", "full"],
    bytes: [controlIs(plan, "tail", 224)],
  });
}

function addRings(cases: Cases): void {
  const heads = [joined(0), joined(0)];
  const plan = fanout({ states: STATES, heads, readersWant: 3 });
  // Attaching rings both.
  const bells: Operation = {
    set: [[1, 0x40], [2, 0x50]].map(([index, value]) => ({
      offset: recordAt(index!),
      hex: word(value!),
    })),
  };
  const from = cases.valid(
    writes(plan, [bells, { write: { text: "hi" } }, { write: { text: "hi" } }]),
    {
      name: "rings",
      about: "Both readers wait: both are rung, once.",
      clauses: "fanout.wake fanout.peers",
      results: ["ok", "ok", "ok"],
      bytes: [controlIs(plan, "readers_want", 0), bellIs(1, 0x41), bellIs(2, 0x51)],
    },
  );
  const want = (name: string, about: string, bits: string, first: number, second: number) =>
    cases.invalid(from, {
      at: plan.control,
      structure: "fanout_control",
      field: "readers_want",
      hex: bits.padEnd(64, "0"),
    }, {
      name,
      about,
      clauses: "fanout.wake",
      results: ["ok", "ok", "ok"],
      bytes: [bellIs(1, first), bellIs(2, second)],
    });
  want("rings_one", "The second waits, and the first does not.", "02", 0x40, 0x51);
  want("rings_nobody", "Nobody waits.", "00", 0x40, 0x50);
  want("rings_no_record", "A bit stands there that no record has.", "04", 0x40, 0x50);
  const attached = cases.valid(
    writes(fanout({ states: STATES }), [{ write: { text: "hi" } }]),
    {
      name: "attach_writer",
      about: "A writer attaches: its readers are rung.",
      clauses: "fanout.peers",
      results: ["ok"],
      bytes: [bellIs(1, 1), bellIs(2, 1), bellIs(0, 1)],
    },
  );
  cases.invalid(attached, field(512, "channel_descriptor", "control_size", 384), {
    name: "attach_one_record",
    about: "Endpoint 2 has no record, and is not rung.",
    clauses: "fanout.peers",
    results: ["ok"],
    bytes: [bellIs(1, 1), bellIs(2, 0), bellIs(0, 1)],
  });
}
