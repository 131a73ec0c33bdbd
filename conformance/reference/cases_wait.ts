/** The cases of `spec/wait.md`, as far as bytes can show it. @module */

import {
  bytesOf,
  Cases,
  controlIs,
  drained,
  member,
  pipe,
  reading,
  store,
  text,
} from "./builder.ts";
import { whole, writersPipe, writing } from "./builder.ts";
import { word } from "./bytes.ts";
import type { Operation } from "./case.ts";
import { addRung } from "./cases_wait_rung.ts";
import { recordAt } from "./encode.ts";
import { fieldOf, flagOf } from "./layout.ts";

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
