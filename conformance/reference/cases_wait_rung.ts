/** Who has rung: cases of `spec/wait.md`. @module */

import { ATTACHED, bellIs, bellIsNot, bytesOf, Cases, CLOSED, controlIs } from "./builder.ts";
import {
  drained,
  member,
  pipe,
  reading,
  rungBits,
  rungIs,
  setRecord,
  store,
  text,
} from "./builder.ts";
import { stateIs, VACANT, whole, writersPipe, writing } from "./builder.ts";
import { toImage, word } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { buildSegment, failed, type Segment } from "./encode.ts";

const BELL = 0x41;
const FOUR = ["ok", "ok", "ok", "ok"];
const RUNG = "wait.rung wait.ring wait.exchange";

/** Adds them to the cases of the wait. */
export function addRung(cases: Cases): void {
  addReader(cases);
  addWriter(cases);
  addFar(cases);
  addStates(cases);
}

/** The kit stores a bell, and who rang before. */
function before(index: number, ...endpoints: number[]): Operation {
  return setRecord(index, { bell: BELL, rung: rungBits(...endpoints) });
}

function addReader(cases: Cases): void {
  const plan = writersPipe();
  const write: Operation = { write: { text: "a" } };
  const operations = (wants: number): Operation[] => [
    before(0),
    before(1),
    { set: [store(plan, "reader_wants", wants)] },
    write,
  ];
  const results = FOUR;
  const from = cases.valid(
    "rung_reader",
    "The writer, endpoint 0, rings: its bit stands in the record of the reader, and no other.",
    RUNG,
    writing(plan, { operations: operations(0x11) }),
    { results, bytes: [bellIs(1, BELL + 1), rungIs(1, 0), bellIs(0, BELL), rungIs(0)] },
  );
  const add = (name: string, about: string, wants: number) =>
    cases.invalid(
      `rung_reader_${name}`,
      about,
      RUNG,
      from,
      member("operations.2.set.0.hex", word(wants)),
      { results, bytes: [bellIs(1, BELL), rungIs(1), bellIs(0, BELL), rungIs(0)] },
    );
  add("awake", "It asks for nothing: nobody is rung, and no bit is set.", 0);
  add("later", "It asks for more than has come.", 0x31);
  for (
    const [name, operation] of [
      ["end", { end: true }],
      ["publish", { publish: true }],
      ["waiting", { write: { text: "a" }, wait: true }],
    ] as const
  ) {
    const claim: Operation = { claim: { text: "a" }, size: 1 };
    const first = name === "publish" ? [claim] : [];
    const all = [...first, ...operations(0x11).slice(0, 3), operation];
    cases.valid(
      `rung_reader_${name}`,
      "Whatever makes `tail` reach what the reader asks for.",
      RUNG,
      writing(plan, { operations: all }),
      {
        results: all.map(() => "ok"),
        bytes: [controlIs(plan, "reader_wants", 0), bellIs(1, BELL + 1), rungIs(1, 0)],
      },
    );
  }
  const others = [1, 7, 8, 31, 32, 100, 254, 255];
  const kept = cases.valid(
    "rung_others",
    "The bits of others stay.",
    RUNG,
    writing(plan, {
      operations: [before(1, ...others), ...operations(0x11).slice(2)],
    }),
    { results: ["ok", "ok", "ok"], bytes: [rungIs(1, 0, ...others)] },
  );
  cases.invalid(
    "rung_again",
    "Its own is there already: it stays as well.",
    RUNG,
    kept,
    member("operations.0", before(1, 0)),
    { results: ["ok", "ok", "ok"], bytes: [bellIs(1, BELL + 1), rungIs(1, 0)] },
  );
}

function addWriter(cases: Cases): void {
  const plan = pipe({ frames: [whole("one"), whole("two")] });
  const operations: Operation[] = [
    before(0, 3),
    before(1),
    { set: [store(plan, "writer_wants", 33)] },
    { read: true },
  ];
  const read = drained([text("one"), text("two")]);
  const from = cases.valid(
    "rung_writer",
    "The reader, endpoint 1, gives back what the writer waits for: its bit is set beside another.",
    RUNG,
    reading(plan, { operations }),
    {
      results: ["ok", "ok", "ok", read],
      bytes: [bellIs(0, BELL + 1), rungIs(0, 1, 3), rungIs(1)],
    },
  );
  const lend: Operation[] = [{ peek: true }, { release: true }];
  const lent = [...operations.slice(0, 3), ...lend, ...lend, { peek: true as const }];
  cases.valid(
    "rung_writer_released",
    "The same, when all is borrowed and given back, and nothing more is there.",
    RUNG,
    reading(plan, { operations: lent }),
    {
      results: [
        "ok",
        "ok",
        "ok",
        { items: [text("one")] },
        "ok",
        { items: [text("two")] },
        "ok",
        drained([]),
      ],
      bytes: [bellIs(0, BELL + 1), rungIs(0, 1, 3), rungIs(1)],
    },
  );
  cases.invalid(
    "rung_writer_later",
    "The writer waits for more: no bit is set.",
    RUNG,
    from,
    member("operations.2.set.0.hex", word(81)),
    { results: ["ok", "ok", "ok", read], bytes: [bellIs(0, BELL), rungIs(0, 3), rungIs(1)] },
  );
}

/** Endpoints whose bits are in other words, and at the end of one. */
function addFar(cases: Cases): void {
  const add = (index: number, role: "writer" | "port") => {
    const channels = [
      { writer: index, reader: 200, capacity: 256 },
      { writer: 200, reader: index, capacity: 256 },
    ];
    const states = Array.from({ length: 256 }, (_, each) => each === 200 ? ATTACHED : VACANT);
    const segment = buildSegment({ endpoints: 256, channels, states });
    const { control } = segment.channels[0]!;
    const setting = writing(segment, {
      role,
      endpoint: index,
      operations: [
        { set: [store({ control }, "reader_wants", 1)] },
        before(200),
        before(index, 40),
        { write: bytesOf(1) },
      ],
    });
    return cases.valid(
      `rung_by_${index}`,
      `Endpoint ${index} rings: its bit is in word ${index >> 5}, bit ${index & 31}.`,
      RUNG,
      setting,
      { results: FOUR, bytes: [rungIs(200, index), rungIs(index, 40)] },
    );
  };
  add(31, "writer");
  add(101, "writer");
  add(32, "port");
  const from = add(255, "port");
  cases.invalid(
    "rung_by_none",
    "Nobody asks.",
    RUNG,
    from,
    member("operations.0.set.0.hex", word(0)),
    { results: FOUR, bytes: [rungIs(200), rungIs(255, 40)] },
  );
}

/** Whoever changes a state sets the bit of the endpoint whose state that is. */
function addStates(cases: Cases): void {
  const clauses = "wait.rung segment.state_ring";
  const ports: Segment = buildSegment({
    endpoints: 3,
    channels: [
      { writer: 0, reader: 2, capacity: 256 },
      { writer: 2, reader: 1, capacity: 256 },
    ],
    states: [ATTACHED, ATTACHED, VACANT],
    records: [{ rung: rungBits(9) }, { rung: rungBits(1) }, { rung: rungBits(0) }],
  });
  cases.valid(
    "rung_attach",
    "Endpoint 2 attaches: its bit is set in its own record and in those of its peers.",
    `${clauses} segment.attach`,
    { kind: "attach", image: toImage(ports.bytes), role: "reader", endpoint: 2, channel: 0 },
    { bytes: [rungIs(0, 2, 9), rungIs(1, 1, 2), rungIs(2, 0, 2)] },
  );
  const plan = pipe({ frames: [whole("hi")] });
  const operations: Operation[] = [before(0, 5), before(1, 6), { close: true }];
  const from = cases.valid(
    "rung_close",
    "Endpoint 1 closes: the bit is its own, in its record and in that of its peer.",
    clauses,
    reading(plan, { operations }),
    {
      results: ["ok", "ok", "ok"],
      bytes: [bellIsNot(0, BELL), rungIs(0, 1, 5), bellIsNot(1, BELL), rungIs(1, 1, 6)],
    },
  );
  cases.invalid(
    "rung_read",
    "It reads instead.",
    clauses,
    from,
    member("operations.2", { read: true }),
    {
      results: ["ok", "ok", drained([text("hi")])],
      bytes: [bellIs(0, BELL), rungIs(0, 5), bellIs(1, BELL), rungIs(1, 6)],
    },
  );
  const fault: Operation = { set: [store(plan, "tail", 33)] };
  const marked = { results: ["ok", "ok", "ok", drained([], "ring.cursor")] };
  const broken = cases.valid(
    "rung_mark",
    "Endpoint 1 finds a fault of endpoint 0: the bit is that of 0, whose state changes.",
    `${clauses} ring.fault`,
    reading(plan, { operations: [before(0, 5), before(1, 6), fault, { read: true }] }),
    { ...marked, bytes: [stateIs(0, failed("ring.cursor")), rungIs(0, 0, 5), rungIs(1, 0, 6)] },
  );
  cases.invalid(
    "rung_mark_closed",
    "Endpoint 0 has closed: its state stays, and the bells and bits are the same.",
    `${clauses} ring.fault`,
    broken,
    member("operations.0", setRecord(0, { bell: BELL, rung: rungBits(5), state: CLOSED })),
    {
      ...marked,
      bytes: [
        stateIs(0, CLOSED),
        rungIs(0, 0, 5),
        rungIs(1, 0, 6),
        bellIsNot(0, BELL),
        bellIsNot(1, BELL),
      ],
    },
  );
}
