/** The cases of `spec/wait.md`, as far as bytes can show it. @module */

import { ATTACHED, bellIs, bellIsNot, bytesOf, Cases, CLOSED, controlIs } from "../builder.ts";
import { drained, member, pipe, reading, rungBits, rungIs, setRecord } from "../builder.ts";
import { stateIs, store, text, VACANT, whole, writersPipe, writing } from "../builder.ts";
import { toImage, word } from "../bytes.ts";
import type { Operation } from "../case.ts";
import { buildSegment, failed, recordAt, type Segment } from "../encode.ts";
import { fieldOf, flagOf } from "../layout.ts";

/** What the bell holds before the operation under test. */
const BELL = 0x41;

/** All cases of this noun. */
export function waitCases(): Cases {
  const cases = new Cases("wait");
  addReaderWants(cases);
  addWriterWants(cases);
  addDisarm(cases);
  addRung(cases);
  return cases;
}

function addReaderWants(cases: Cases): void {
  const plan = writersPipe({ start: 0xffffffe0 });
  const bell = recordAt(1);
  const operations: Operation[] = [
    { set: [store(plan, "reader_wants", 0xfffffff1), { offset: bell, hex: word(BELL) }] },
    { write: { text: "hello" } },
  ];
  const clauses = "wait.exchange wait.ring";
  const from = cases.valid(writing(plan, { operations }), {
    name: "reader_rung",
    about: "`tail` reaches what the reader asks for, across 2^32: the bell is rung once.",
    clauses,
    results: ["ok", "ok"],
    bytes: [
      controlIs(plan, "reader_wants", 0),
      { offset: bell, hex: word(BELL + 1), about: "bell of 1" },
    ],
  });
  for (const [name, wants] of [["later", 0x11], ["far", 0x7ffffff1]] as const) {
    cases.invalid(from, member("operations.0.set.0.hex", word(wants)), {
      name: `reader_${name}`,
      about: "The reader asks for a position that `tail` has not reached.",
      clauses,
      results: ["ok", "ok"],
      bytes: [
        controlIs(plan, "reader_wants", wants),
        { offset: bell, hex: word(BELL), about: "bell of 1" },
      ],
    });
  }
  for (const [name, wants] of [["unarmed", 0xfffffff0], ["between", 0xfffffffb]] as const) {
    cases.valid(
      writing(plan, {
        operations: [
          { set: [store(plan, "reader_wants", wants), { offset: bell, hex: word(BELL) }] },
          operations[1]!,
        ],
      }),
      {
        name: `reader_${name}`,
        about: "A word that no reader stores: it is a request all the same, for what it holds.",
        clauses,
        results: ["ok", "ok"],
        bytes: [
          controlIs(plan, "reader_wants", 0),
          { offset: bell, hex: word(BELL + 1), about: "bell of 1" },
        ],
      },
    );
  }
  cases.invalid(from, member("operations.0.set.0.hex", word(0)), {
    name: "reader_awake",
    about: "The reader asks for nothing.",
    clauses,
    results: ["ok", "ok"],
    bytes: [
      controlIs(plan, "reader_wants", 0),
      { offset: bell, hex: word(BELL), about: "bell of 1" },
    ],
  });
}

function addWriterWants(cases: Cases): void {
  const plan = pipe({ frames: [whole("hello"), whole("hello")] });
  const bell = recordAt(0);
  const hello = [text("hello"), text("hello")];
  const operations: Operation[] = [
    { set: [store(plan, "writer_wants", 33), { offset: bell, hex: word(BELL) }] },
    { read: true },
  ];
  const from = cases.valid(reading(plan, { operations }), {
    name: "writer_rung",
    about: "`head` reaches what the writer asks for: the bell is rung once.",
    clauses: "wait.exchange wait.ring ring.release_all",
    results: ["ok", drained(hello)],
    bytes: [
      controlIs(plan, "writer_wants", 0),
      { offset: bell, hex: word(BELL + 1), about: "bell of 0" },
    ],
  });
  cases.invalid(from, member("operations.0.set.0.hex", word(81)), {
    name: "writer_later",
    about: "The writer asks for a position that `head` does not reach.",
    clauses: "wait.exchange wait.ring",
    results: ["ok", drained(hello)],
    bytes: [
      controlIs(plan, "writer_wants", 81),
      { offset: bell, hex: word(BELL), about: "bell of 0" },
    ],
  });
}

/** The peer rings every mechanism: whoever waits for it then sleeps, and does not poll. */
function ringsAll(endpoint: number): Operation {
  const { offset } = fieldOf("endpoint_record", "wakes");
  const all = flagOf("wake_mechanism", "agent") | flagOf("wake_mechanism", "futex") |
    flagOf("wake_mechanism", "wasmtime");
  return { set: [{ offset: recordAt(endpoint) + offset, hex: word(all) }] };
}

function addDisarm(cases: Cases): void {
  const plan = writersPipe();
  const operations: Operation[] = [
    ringsAll(1),
    { write: bytesOf(112) },
    { write: bytesOf(64) },
    { write: bytesOf(64), wait: true },
  ];
  const from = cases.valid(writing(plan, { operations }), {
    name: "disarm_writer",
    about: "A write that waited in vain has taken its request back.",
    clauses: "wait.disarm ring.publish_all",
    results: ["ok", "ok", "ok", "wait.timeout"],
    bytes: [controlIs(plan, "writer_wants", 0), controlIs(plan, "tail", 208)],
  });
  cases.invalid(from, member("operations.3.write.count", 0), {
    name: "no_wait",
    about: "A write for which there is room does not wait.",
    clauses: "wait.disarm ring.publish_all",
    results: ["ok", "ok", "ok", "ok"],
    bytes: [controlIs(plan, "writer_wants", 0), controlIs(plan, "tail", 224)],
  });
  const empty = pipe();
  cases.valid(reading(empty, { operations: [ringsAll(0), { read: true }] }), {
    name: "disarm_reader",
    about: "A read that waited in vain has taken its request back.",
    clauses: "wait.disarm",
    results: ["ok", drained([])],
    bytes: [controlIs(empty, "reader_wants", 0)],
  });
}

// Who has rung: cases of `spec/wait.md`.

const FOUR = ["ok", "ok", "ok", "ok"];
const RUNG = "wait.rung wait.ring wait.exchange";

/** Adds them to the cases of the wait. */
function addRung(cases: Cases): void {
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
  const from = cases.valid(writing(plan, { operations: operations(0x11) }), {
    name: "rung_reader",
    about:
      "The writer, endpoint 0, rings: its bit stands in the record of the reader, and no other.",
    clauses: RUNG,
    results,
    bytes: [bellIs(1, BELL + 1), rungIs(1, 0), bellIs(0, BELL), rungIs(0)],
  });
  const add = (name: string, about: string, wants: number) =>
    cases.invalid(from, member("operations.2.set.0.hex", word(wants)), {
      name: `rung_reader_${name}`,
      about,
      clauses: RUNG,
      results,
      bytes: [bellIs(1, BELL), rungIs(1), bellIs(0, BELL), rungIs(0)],
    });
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
    cases.valid(writing(plan, { operations: all }), {
      name: `rung_reader_${name}`,
      about: "Whatever makes `tail` reach what the reader asks for.",
      clauses: RUNG,
      results: all.map(() => "ok"),
      bytes: [controlIs(plan, "reader_wants", 0), bellIs(1, BELL + 1), rungIs(1, 0)],
    });
  }
  const others = [1, 7, 8, 31, 32, 100, 254, 255];
  const kept = cases.valid(
    writing(plan, {
      operations: [before(1, ...others), ...operations(0x11).slice(2)],
    }),
    {
      name: "rung_others",
      about: "The bits of others stay.",
      clauses: RUNG,
      results: ["ok", "ok", "ok"],
      bytes: [rungIs(1, 0, ...others)],
    },
  );
  cases.invalid(kept, member("operations.0", before(1, 0)), {
    name: "rung_again",
    about: "Its own is there already: it stays as well.",
    clauses: RUNG,
    results: ["ok", "ok", "ok"],
    bytes: [bellIs(1, BELL + 1), rungIs(1, 0)],
  });
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
  const from = cases.valid(reading(plan, { operations }), {
    name: "rung_writer",
    about: "The reader, endpoint 1, gives back what the writer waits for: its bit " +
      "is set beside another.",
    clauses: RUNG,
    results: ["ok", "ok", "ok", read],
    bytes: [bellIs(0, BELL + 1), rungIs(0, 1, 3), rungIs(1)],
  });
  const lend: Operation[] = [{ peek: true }, { release: true }];
  const lent = [...operations.slice(0, 3), ...lend, ...lend, { peek: true as const }];
  cases.valid(reading(plan, { operations: lent }), {
    name: "rung_writer_released",
    about: "The same, when all is borrowed and given back, and nothing more is there.",
    clauses: RUNG,
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
  });
  cases.invalid(from, member("operations.2.set.0.hex", word(81)), {
    name: "rung_writer_later",
    about: "The writer waits for more: no bit is set.",
    clauses: RUNG,
    results: ["ok", "ok", "ok", read],
    bytes: [bellIs(0, BELL), rungIs(0, 3), rungIs(1)],
  });
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
    return cases.valid(setting, {
      name: `rung_by_${index}`,
      about: `Endpoint ${index} rings: its bit is in word ${index >> 5}, bit ${index & 31}.`,
      clauses: RUNG,
      results: FOUR,
      bytes: [rungIs(200, index), rungIs(index, 40)],
    });
  };
  add(31, "writer");
  add(101, "writer");
  add(32, "port");
  const from = add(255, "port");
  cases.invalid(from, member("operations.0.set.0.hex", word(0)), {
    name: "rung_by_none",
    about: "Nobody asks.",
    clauses: RUNG,
    results: FOUR,
    bytes: [rungIs(200), rungIs(255, 40)],
  });
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
  cases.valid({
    kind: "attach",
    image: toImage(ports.bytes),
    role: "reader",
    endpoint: 2,
    channel: 0,
  }, {
    name: "rung_attach",
    about: "Endpoint 2 attaches: its bit is set in its own record and in those of its peers.",
    clauses: `${clauses} segment.attach`,
    bytes: [rungIs(0, 2, 9), rungIs(1, 1, 2), rungIs(2, 0, 2)],
  });
  const plan = pipe({ frames: [whole("hi")] });
  const operations: Operation[] = [before(0, 5), before(1, 6), { close: true }];
  const from = cases.valid(reading(plan, { operations }), {
    name: "rung_close",
    about: "Endpoint 1 closes: the bit is its own, in its record and in that of its peer.",
    clauses,
    results: ["ok", "ok", "ok"],
    bytes: [bellIsNot(0, BELL), rungIs(0, 1, 5), bellIsNot(1, BELL), rungIs(1, 1, 6)],
  });
  cases.invalid(from, member("operations.2", { read: true }), {
    name: "rung_read",
    about: "It reads instead.",
    clauses,
    results: ["ok", "ok", drained([text("hi")])],
    bytes: [bellIs(0, BELL), rungIs(0, 5), bellIs(1, BELL), rungIs(1, 6)],
  });
  const fault: Operation = { set: [store(plan, "tail", 33)] };
  const marked = { results: ["ok", "ok", "ok", drained([], "ring.cursor")] };
  const broken = cases.valid(
    reading(plan, { operations: [before(0, 5), before(1, 6), fault, { read: true }] }),
    {
      name: "rung_mark",
      about: "Endpoint 1 finds a fault of endpoint 0: the bit is that of 0, whose state changes.",
      clauses: `${clauses} ring.fault`,
      ...marked,
      bytes: [stateIs(0, failed("ring.cursor")), rungIs(0, 0, 5), rungIs(1, 0, 6)],
    },
  );
  cases.invalid(
    broken,
    member("operations.0", setRecord(0, { bell: BELL, rung: rungBits(5), state: CLOSED })),
    {
      name: "rung_mark_closed",
      about: "Endpoint 0 has closed: its state stays, and the bells and bits are the same.",
      clauses: `${clauses} ring.fault`,
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
