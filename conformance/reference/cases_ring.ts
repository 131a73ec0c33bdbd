/** The cases of `spec/ring.md`. @module */

import { bytesOf, Cases, controlIs, drained, endFrame, faults, field, member } from "./builder.ts";
import { message, pattern, pipe, reading, reads, stateIs, store, text } from "./builder.ts";
import { whole, writersPipe, writing } from "./builder.ts";
import { toHex, word } from "./bytes.ts";
import { failed } from "./encode.ts";

const CONTROL = "ring_control";

/** All cases of this noun. */
export function ringCases(): Cases {
  const cases = new Cases("ring");
  addReads(cases);
  addTailFaults(cases);
  addHeadFaults(cases);
  addRoom(cases);
  addClaims(cases);
  return cases;
}

function addReads(cases: Cases): void {
  const seen = [message({ hex: toHex(pattern(100)) }), text("hello")];
  const example = pipe({ start: 0xffffff80, frames: [whole(pattern(100)), whole("hello")] });
  cases.valid(
    "wrap",
    "A ring that starts at 0xffffff80: the cursors pass 2^32.",
    "ring.start ring.cursor ring.release ring.release_all ring.head_owner ring.fault",
    reading(example),
    reads(seen, "nothing", [
      controlIs(example, "head", 0x20),
      controlIs(example, "tail", 0x20),
      stateIs(0, 1),
    ]),
  );
  const add = (name: string, about: string, value: number) =>
    cases.invalid(
      name,
      about,
      "ring.cursor ring.fault ring.release ring.release_all ring.head_owner",
      "ring/wrap",
      field(example.control, CONTROL, "tail", value),
      {
        results: [drained([], "ring.cursor")],
        bytes: [stateIs(0, failed("ring.cursor")), controlIs(example, "head", 0xffffff80)],
      },
    );
  add("tail_odd", "`tail` stands between two frames' places.", 0x28);
  add("tail_ahead", "`tail` is more than the capacity ahead.", 0x90);
  add("tail_behind", "`tail` is behind the head.", 0xffffff70);
  add("tail_far", "`tail` is half of all positions ahead.", 0x7fffff80);
  const full = pipe({ frames: [whole(pattern(112)), whole(pattern(96)), endFrame()] });
  cases.valid(
    "full",
    "All of the capacity is used, the reserve by `end`.",
    "ring.cursor ring.room",
    reading(full),
    reads([message(bytesOf(112)), message(bytesOf(96))], "ended"),
  );
  cases.invalid(
    "start_differs",
    "The descriptor states another start than the writer began at.",
    "ring.start",
    "ring/wrap",
    field(384, "channel_descriptor", "start", 0x80000000),
    faults([], "ring.cursor"),
  );
  const exact = pipe({ start: 128, frames: [whole(pattern(112)), whole("hi")] });
  cases.valid(
    "no_pad",
    "A frame that ends with the byte area needs no pad.",
    "ring.pad",
    reading(exact),
    reads([message(bytesOf(112)), text("hi")]),
  );
}

function addTailFaults(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two")] });
  const store48 = (
    value: number,
  ) => [{ set: [store(plan, "tail", value)] }, { read: true as const }];
  const one = text("one");
  const two = text("two");
  const from = cases.valid(
    "tail_advances",
    "A second look at `tail` shows a second message.",
    "ring.cursor ring.release_all ring.head_owner",
    {
      ...reading(plan),
      operations: [{ set: [store(plan, "tail", 32)] }, { read: true }, ...store48(64)],
    },
    {
      results: ["ok", drained([one]), "ok", drained([two])],
      bytes: [controlIs(plan, "head", 64), controlIs(plan, "reader_wants", 0)],
    },
  );
  const clauses = "ring.cursor ring.fault pipe.fault ring.release_all ring.tail_owner";
  for (const [name, value] of [["back", 16], ["odd", 63], ["beyond", 304]] as const) {
    cases.invalid(
      `tail_later_${name}`,
      `\`tail\` moves from 32 to ${value}.`,
      clauses,
      from,
      member("operations.2.set.0.hex", word(value)),
      {
        results: ["ok", drained([one]), "ok", drained([], "ring.cursor")],
        bytes: [stateIs(0, failed("ring.cursor")), controlIs(plan, "head", 32)],
      },
    );
  }
}

function addHeadFaults(cases: Cases): void {
  const plan = writersPipe();
  const full = [{ write: bytesOf(112) }, { write: bytesOf(80) }] as const;
  const from = cases.valid(
    "head_advances",
    "The reader has given back the first frame: the next fits, behind a pad.",
    "ring.cursor ring.room ring.pad ring.tail_owner ring.publish",
    writing(plan, {
      operations: [...full, { set: [store(plan, "head", 128)] }, { write: bytesOf(80) }],
    }),
    {
      results: ["ok", "ok", "ok", "ok"],
      bytes: [
        { offset: plan.data + 224, hex: "10 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00" },
        { offset: plan.data, hex: "50 00 00 00 01 03 00 00 00 00 00 00" },
        controlIs(plan, "tail", 352),
        stateIs(1, 1),
      ],
    },
  );
  const fault = {
    results: ["ok", "ok", "ok", "ring.cursor"],
    bytes: [controlIs(plan, "tail", 224), stateIs(1, failed("ring.cursor"))],
  };
  const values: [string, number][] = [["odd", 129], ["ahead", 240], ["behind", 0xfffffff0]];
  for (const [name, value] of values) {
    cases.invalid(
      `head_${name}`,
      `\`tail\` is 224, and \`head\` moves from 0 to ${value}.`,
      "ring.cursor ring.fault pipe.fault ring.tail_owner ring.publish",
      from,
      member("operations.2.set.0.hex", word(value)),
      fault,
    );
  }
  cases.invalid(
    "head_stays",
    "The reader has given nothing back: there is no room.",
    "ring.room",
    from,
    member("operations.2.set.0.hex", word(0)),
    {
      results: ["ok", "ok", "ok", "full"],
      bytes: [controlIs(plan, "tail", 224), { offset: plan.data, hex: "70 00 00 00" }],
    },
  );
  const again = cases.valid(
    "head_advances_twice",
    "`head` goes on from where it was.",
    "ring.cursor",
    writing(plan, {
      operations: [
        ...full,
        { set: [store(plan, "head", 128)] },
        { write: bytesOf(48) },
        { set: [store(plan, "head", 224)] },
        { write: bytesOf(112) },
      ],
    }),
    { results: ["ok", "ok", "ok", "ok", "ok", "ok"], bytes: [controlIs(plan, "tail", 448)] },
  );
  cases.invalid(
    "head_back",
    "`head` goes back.",
    "ring.cursor ring.fault",
    again,
    member("operations.4.set.0.hex", word(112)),
    {
      results: ["ok", "ok", "ok", "ok", "ok", "ring.cursor"],
      bytes: [stateIs(1, failed("ring.cursor"))],
    },
  );
}

function addRoom(cases: Cases): void {
  const plan = writersPipe();
  const from = cases.valid(
    "reserve",
    "Messages may take all but 16 bytes, and `end` takes those.",
    "ring.room pipe.end_now frame.end pipe.end",
    writing(plan, {
      operations: [
        { write: bytesOf(112) },
        { write: bytesOf(80) },
        { write: { hex: "" } },
        { end: true },
        { take: true },
      ],
    }),
    {
      results: [
        "ok",
        "ok",
        "ok",
        "ok",
        drained([message(bytesOf(112)), message(bytesOf(80)), message({ hex: "" })], "ended"),
      ],
      bytes: [controlIs(plan, "tail", 256)],
    },
  );
  cases.invalid(
    "reserve_kept",
    "A message of one byte would take the last 16 bytes.",
    "ring.room",
    from,
    member("operations.2.write.hex", "00"),
    {
      results: [
        "ok",
        "ok",
        "full",
        "ok",
        drained([message(bytesOf(112)), message(bytesOf(80))], "ended"),
      ],
      bytes: [controlIs(plan, "tail", 240)],
    },
  );
  cases.invalid(
    "reserve_for_end",
    "What `end` may take, an empty message may not.",
    "ring.room pipe.end_now",
    from,
    member("operations.3", { write: { hex: "" } }),
    {
      results: [
        "ok",
        "ok",
        "ok",
        "full",
        drained([message(bytesOf(112)), message(bytesOf(80)), message({ hex: "" })]),
      ],
      bytes: [controlIs(plan, "tail", 240)],
    },
  );
}

function addClaims(cases: Cases): void {
  const plan = writersPipe();
  cases.valid(
    "batch",
    "Two messages are finished in their places, and made visible by one store.",
    "ring.publish ring.batch",
    writing(plan, {
      operations: [
        { claim: { text: "a" }, size: 40 },
        { claim: { text: "b", tag: 2 }, size: 1 },
        { take: true },
        { publish: true },
        { take: true },
      ],
    }),
    {
      results: [
        "ok",
        "ok",
        drained([]),
        "ok",
        drained([message({ text: "a" }), message({ text: "b", tag: 2 })]),
      ],
      bytes: [controlIs(plan, "tail", 64)],
    },
  );
  cases.valid(
    "abandon",
    "A claim that is given up leaves no trace.",
    "ring.tail_owner",
    writing(plan, {
      operations: [
        { claim: { text: "a" }, size: 100, abandon: true },
        { write: { text: "b" } },
        { take: true },
      ],
    }),
    {
      results: ["ok", "ok", drained([message({ text: "b" })])],
      bytes: [controlIs(plan, "tail", 32)],
    },
  );
}
