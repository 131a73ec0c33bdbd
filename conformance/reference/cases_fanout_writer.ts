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
  const from = cases.valid(
    "write",
    "Whole messages, a pad where one does not fit, and `end`; a second `end` does nothing.",
    "fanout.writer fanout.ended fanout.whole fanout.size fanout.room fanout.number",
    writes(plan, [...ends, { end: true }, small]),
    {
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
    },
  );
  cases.invalid(
    "write_not_ended",
    "It does not end.",
    "fanout.ended",
    from,
    member("operations", [large, take, small]),
    {
      results: ["ok", drained([message(bytesOf(112))]), "ok"],
      bytes: [controlIs(plan, "ended", 0)],
    },
  );
  cases.invalid(
    "write_large",
    "The largest frame is half the capacity: one byte more is refused.",
    "fanout.size fanout.whole",
    from,
    member("operations.0", { write: bytesOf(113) }),
    {
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
    },
  );
  cases.invalid(
    "write_wait_large",
    "Nor does a call that may wait cut it.",
    "fanout.size fanout.whole",
    from,
    member("operations.0", { write: bytesOf(300), wait: true }),
    {
      results: ["message.size", drained([]), "ok", "ok", "ok", all, "ok", "pipe.ended"],
    },
  );
  cases.invalid(
    "write_no_pad",
    "A frame of 80 bytes ends with the byte area: no pad.",
    "fanout.writer fanout.room",
    from,
    member("operations.3", { write: bytesOf(16) }),
    {
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
    },
  );
}

/** The last 16 bytes are for `end`, which then finds its room. */
function addReserve(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0)] });
  const from = cases.valid(
    "filled",
    "Frames of 240 bytes leave the room of `end`, in an area of 256.",
    "fanout.room fanout.writer",
    writes(plan, [large, { write: bytesOf(96) }, { end: true }]),
    { results: ["ok", "ok", "ok"], bytes: [controlIs(plan, "tail", 256)] },
  );
  cases.invalid(
    "filled_whole",
    "The second frame would leave none.",
    "fanout.room",
    from,
    member("operations.1", large),
    { results: ["ok", "full", "ok"], bytes: [controlIs(plan, "tail", 144)] },
  );
}

/** Who holds the writer back. */
function addRoom(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const operations: Operation[] = [large, small, storesHead(plan, 0, joined(224)), small];
  const from = cases.valid(
    "held_back",
    "One reader has read all, the other one nothing: there is no room.",
    "fanout.room fanout.count fanout.no_readers",
    writes(plan, operations),
    {
      results: ["ok", "ok", "ok", "full"],
      bytes: [
        controlIs(plan, "tail", 224),
        recordIs(plan, 1, "writer_wants", 0),
        stateIs(2, ATTACHED),
      ],
    },
  );
  const goes = {
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED)],
  };
  const free = (name: string, about: string, clauses: string, head: number) =>
    cases.invalid(name, about, clauses, from, field(recordOf(plan, 1), READER, "head", head), goes);
  free("held_left", "The other has left.", "fanout.count fanout.no_readers", 0);
  const state = (name: string, about: string, value: number) =>
    cases.invalid(
      name,
      about,
      "fanout.count fanout.gone fanout.no_readers",
      from,
      field(recordAt(2), "endpoint_record", "state", value),
      goes,
    );
  state("held_vacant", "The other has not attached.", VACANT);
  state("held_closed", "The other has closed.", CLOSED);
  state("held_failed", "The other was marked failed.", failed("peer.lost"));
  state("held_invalid", "The state of the other is none that there is.", 9);
  cases.invalid(
    "held_joining",
    "The other is about to join: what it begins at is at least the first position.",
    "fanout.count fanout.room",
    from,
    field(recordOf(plan, 1), READER, "head", JOINING),
    {
      results: ["ok", "ok", "ok", "full"],
      bytes: [stateIs(2, ATTACHED), recordIs(plan, 1, "head", JOINING)],
    },
  );
  cases.invalid(
    "held_both",
    "Both have given back the first message.",
    "fanout.room",
    from,
    member("operations.2", {
      set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(128)) })),
    }),
    goes,
  );
  cases.invalid(
    "held_and_timed_out",
    "A call that waits gives up at its deadline, and asks for nothing any more.",
    "fanout.room",
    from,
    member("operations.3", { write: bytesOf(80), wait: true }),
    {
      results: ["ok", "ok", "ok", "wait.timeout"],
      bytes: [controlIs(plan, "tail", 224), recordIs(plan, 1, "writer_wants", 0)],
    },
  );
  const nobody = fanout({ states: STATES });
  cases.valid(
    "nobody",
    "Nobody has joined: nobody holds the writer back.",
    "fanout.no_readers fanout.count",
    writes(nobody, [large, small, small, large]),
    { results: ["ok", "ok", "ok", "ok"], bytes: [controlIs(nobody, "tail", 480)] },
  );
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
  const from = cases.valid(
    "heads",
    "Both readers give back what they have read.",
    "fanout.head fanout.head_fault",
    writes(plan, operations),
    {
      results: ["ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 352), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  const fault = (name: string, about: string, head: number) =>
    cases.invalid(
      name,
      about,
      "fanout.head fanout.head_fault",
      from,
      member("operations.2", both(joined(224), head)),
      {
        results: ["ok", "ok", "ok", "ok"],
        bytes: [
          controlIs(plan, "tail", 352),
          stateIs(1, ATTACHED),
          stateIs(2, failed("ring.cursor")),
        ],
      },
    );
  fault("head_beyond", "One states a position that was not published.", joined(240));
  fault("head_behind", "One states a position behind where it began.", joined(0xfffffff0));
  fault("head_far", "One states a position that is half of all away.", joined(0x80000000));
  fault("head_odd", "One states no multiple of 16.", joined(136));
  fault("head_bit", "One states a position without bit 0.", 128);
  fault("head_unknown", "One states 3.", 3);
  const twice = cases.valid(
    "heads_twice",
    "A reader gives room back twice.",
    "fanout.head",
    writes(plan, [...operations, both(joined(352), joined(352)), small, large]),
    {
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
      bytes: [stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(
    "head_back",
    "The second time it goes back, and is counted no more.",
    "fanout.head fanout.head_fault fanout.gone",
    twice,
    member("operations.4", both(joined(352), joined(0))),
    {
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "full"],
      bytes: [stateIs(2, failed("ring.cursor")), controlIs(plan, "tail", 448)],
    },
  );
}

/** A reader that is gone does not come back. */
function addGone(cases: Cases): void {
  const plan = fanout({ states: STATES, heads: [joined(0), joined(0)] });
  const first = storesHead(plan, 0, joined(224));
  const further = storesHead(plan, 0, joined(352));
  const operations = [large, small, first, setState(2, CLOSED), small];
  const from = cases.valid(
    "gone",
    "A reader that has closed is not counted, also when its state says otherwise later.",
    "fanout.gone fanout.no_readers",
    writes(plan, [...operations, setState(2, ATTACHED), further, large]),
    {
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 480), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  const back: Operation = {
    set: [0, 1].map((index) => ({ offset: recordOf(plan, index), hex: word(joined(352)) })),
  };
  cases.invalid(
    "gone_reads",
    "Later it has even read all that is there: it does not hold the writer back.",
    "fanout.gone",
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
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(
    "gone_fault",
    "It was marked for its `head`, and then its words are as they should be.",
    "fanout.gone fanout.head_fault",
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
      results: ["ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"],
      bytes: [controlIs(plan, "tail", 640), stateIs(1, ATTACHED), stateIs(2, ATTACHED)],
    },
  );
  cases.invalid(
    "not_gone",
    "It was there all the time.",
    "fanout.gone fanout.count",
    from,
    member("operations.3", setState(2, ATTACHED)),
    {
      results: ["ok", "ok", "ok", "ok", "full", "ok", "ok", "full"],
      bytes: [controlIs(plan, "tail", 224)],
    },
  );
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
    "rings",
    "Both readers wait: both are rung, once.",
    "fanout.wake fanout.peers",
    writes(plan, [bells, { write: { text: "hi" } }, { write: { text: "hi" } }]),
    {
      results: ["ok", "ok", "ok"],
      bytes: [controlIs(plan, "readers_want", 0), bellIs(1, 0x41), bellIs(2, 0x51)],
    },
  );
  const want = (name: string, about: string, bits: string, first: number, second: number) =>
    cases.invalid(
      name,
      about,
      "fanout.wake",
      from,
      {
        at: plan.control,
        structure: "fanout_control",
        field: "readers_want",
        hex: bits.padEnd(64, "0"),
      },
      {
        results: ["ok", "ok", "ok"],
        bytes: [bellIs(1, first), bellIs(2, second)],
      },
    );
  want("rings_one", "The second waits, and the first does not.", "02", 0x40, 0x51);
  want("rings_nobody", "Nobody waits.", "00", 0x40, 0x50);
  want("rings_no_record", "A bit stands there that no record has.", "04", 0x40, 0x50);
  cases.invalid(
    "attach_one_record",
    "Endpoint 2 has no record, and is not rung.",
    "fanout.peers",
    cases.valid(
      "attach_writer",
      "A writer attaches: its readers are rung.",
      "fanout.peers",
      writes(fanout({ states: STATES }), [{ write: { text: "hi" } }]),
      { results: ["ok"], bytes: [bellIs(1, 1), bellIs(2, 1), bellIs(0, 1)] },
    ),
    field(512, "channel_descriptor", "control_size", 384),
    { results: ["ok"], bytes: [bellIs(1, 1), bellIs(2, 0), bellIs(0, 1)] },
  );
}
