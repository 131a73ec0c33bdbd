/** How an endpoint takes its record, and that of a state word only the low byte counts. */

import { assertEquals, assertThrows } from "@std/assert";
import { ClosedError } from "../error.ts";
import { assertCode, pipe, pipeSegment } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { portMemory } from "../port/options.ts";
import { Port } from "../port/port.ts";
import { Segment } from "../memory/segment.ts";
import { attachEndpoint, leaveEndpoint, requireVacant } from "./endpoint.ts";
import { agentMechanism, type Mechanism } from "./mechanism.ts";
import { closeEndpoint, failEndpoint } from "./state.ts";
import { waitFor } from "./waitable.ts";
import { pays } from "./spin.ts";

const STATE = layout.ENDPOINT_STATE_WORD;
const WAKES = layout.ENDPOINT_WAKES_WORD;
const BELL = layout.ENDPOINT_BELL_WORD;

function record(segment: Segment, index: number): Int32Array {
  return segment.words(128 + index * 128, 128);
}

/** Runs with every change by an atomic operation named, in order. */
function changes(run: () => void): string[] {
  const seen: string[] = [];
  const { store, add, or, load, compareExchange } = Atomics;
  const names = ["bell", "state", "wakes", "agent", "generation", "features"];
  const name = (at: number) => names[at & 31] ?? `${at}`;
  try {
    Object.assign(Atomics, {
      store: (words: Int32Array, at: number, value: number) => {
        seen.push(`store ${name(at)}`);
        return store(words, at, value);
      },
      load: (words: Int32Array, at: number) => {
        seen.push(`load ${name(at)}`);
        return load(words, at);
      },
      or: (words: Int32Array, at: number, value: number) => {
        seen.push(`rung ${(at >> 5) - 1}`);
        return or(words, at, value);
      },
      add: (words: Int32Array, at: number, value: number) => {
        seen.push(`ring ${(at >> 5) - 1}`);
        return add(words, at, value);
      },
      compareExchange: (words: Int32Array, at: number, from: number, to: number) => {
        seen.push(`exchange ${name(at)}`);
        return compareExchange(words, at, from, to);
      },
    });
    run();
  } finally {
    Object.assign(Atomics, { store, add, or, load, compareExchange });
  }
  return seen;
}

Deno.test("[segment.attach] [segment.again] the exchange, the words after it, the ring", () => {
  const segment = pipeSegment();
  const steps = changes(() => attachEndpoint(segment, 1));
  assertEquals(steps, [
    "load state",
    "exchange state",
    "store wakes",
    "store features", // [segment.features]
    "load generation",
    "rung 1", // [wait.rung]
    "ring 1",
    "rung 0",
    "ring 0",
  ]);
});

Deno.test("[segment.attach] who loses the exchange stores nothing, and rings", () => {
  for (const [state, wakes] of [[1, 6], [3 | (67 << 8), 0]] as const) {
    const segment = pipeSegment();
    const words = record(segment, 1);
    const { load } = Atomics;
    try {
      // Somebody else takes it, or marks it, just after the load that found it vacant.
      Atomics.load = ((view: Int32Array, at: number) => {
        const word = load(view, at);
        if ((at & 31) === STATE) [words[STATE], words[WAKES]] = [state, wakes];
        return word;
      }) as typeof load;
      assertCode(() => attachEndpoint(segment, 1), "segment.endpoint");
    } finally {
      Atomics.load = load;
    }
    assertEquals([words[STATE], words[WAKES], words[BELL]], [state, wakes, 1]);
    assertEquals(record(segment, 0)[BELL], 1);
  }
});

Deno.test("[segment.attach] where the endpoint is not vacant nothing is stored or rung", () => {
  for (const state of [1, 2, 3, 4, 0x101]) {
    const segment = pipeSegment();
    record(segment, 1)[STATE] = state;
    const before = segment.bytes(0, segment.size).slice();
    const steps = changes(() => assertCode(() => attachEndpoint(segment, 1), "segment.endpoint"));
    assertEquals([steps, segment.bytes(0, segment.size)], [["load state"], before]);
  }
});

Deno.test("[segment.state_low] an endpoint is vacant by its low byte", () => {
  const segment = pipeSegment();
  record(segment, 1)[STATE] = 0x500;
  requireVacant(segment, 1);
  attachEndpoint(segment, 1);
  assertEquals(record(segment, 1)[STATE], 0x501); // [segment.again]
  record(segment, 0)[STATE] = 0x501;
  assertCode(() => attachEndpoint(segment, 0), "segment.endpoint");
  assertEquals([closeEndpoint(segment, 0), record(segment, 0)[STATE]], [true, 0x502]);
  record(segment, 1)[STATE] = 0x702;
  assertEquals([failEndpoint(segment, 1), record(segment, 1)[STATE]], [false, 0x702]);
});

Deno.test("[segment.state_low] upper bits of a peer's state count for nothing", () => {
  for (
    const [own, peer, code] of [
      [1, 0x501, undefined],
      [1, 0x500, undefined],
      [0x502, 1, "pipe.closed"],
      [1, 0x502, "peer.closed"],
    ] as const
  ) {
    const { segment, writer, reader } = pipe();
    record(segment, 1)[STATE] = own;
    record(segment, 0)[STATE] = peer;
    if (code === undefined) {
      assertEquals(reader.read({ timeout: 1 }), undefined);
      // From the other end they change places.
      record(segment, 0)[STATE] = own;
      record(segment, 1)[STATE] = peer;
      assertEquals([writer.tryWrite(7), reader.tryRead()], [true, 7]);
    } else assertCode(() => reader.read({ timeout: 1 }), code);
  }
});

Deno.test("[segment.state_low] a vacant peer with upper bits is no reason to poll", () => {
  const agent = agentMechanism();
  const sleeps: number[] = [];
  const mechanism: Mechanism = {
    rings: agent.rings,
    sleeps: agent.sleeps,
    blocks: true,
    sleep(words, index, expected, ms) {
      sleeps.push(ms);
      agent.sleep(words, index, expected, ms);
    },
    sleepAsync: agent.sleepAsync.bind(agent),
    notify: agent.notify.bind(agent),
  };
  const segment = pipeSegment();
  const reader = Reader.attach(segment, { spin: 0, mechanism });
  record(segment, 0)[STATE] = 0x900;
  assertEquals(reader.read({ timeout: 50 }), undefined);
  assertEquals(sleeps[0]! > layout.WAIT_POLL_MS, true);
});

Deno.test("[segment.own_state] any other word counts as failed, without a reason", () => {
  for (const state of [0, 0x100, 0x101, 0x80000001 | 0, 0x4300, 4, 0xff, 0x43ff]) {
    const { segment, reader, writer } = pipe();
    record(segment, 1)[STATE] = state;
    const error = assertThrows(() => reader.tryRead(), ClosedError);
    assertEquals([error.code, error.reason], ["pipe.failed", undefined], `${state}`);
    record(segment, 1)[STATE] = 1;
    record(segment, 0)[STATE] = state;
    const other = assertThrows(() => writer.tryWrite(1), ClosedError);
    assertEquals([other.code, other.reason], ["pipe.failed", undefined], `${state}`);
  }
});

Deno.test("[segment.claim_checked] what is refused leaves blank memory blank", () => {
  const geometry = { endpoints: 2, channels: [{ writer: 0, reader: 1, capacity: 256 }] };
  const memory = portMemory({ capacity: 256 });
  const wrong = { memory, capacity: 256 };
  const refused: (() => unknown)[] = [
    () => Segment.create(memory, { ...geometry, endpoints: 257 }),
    () => Segment.create(new Uint8Array(memory, 64), geometry),
    () => Segment.create(new Uint8Array(memory, 0, 1152), geometry),
    () => Segment.create(memory, geometry, { timeout: -1 }),
    () => Segment.create(memory, geometry, { timeout: NaN }),
    () => Port.create({ ...wrong, codec: "xml" as "json" }),
    () => Port.create({ ...wrong, maxMessageSize: -1 }),
    () => Port.create({ ...wrong, inboxCount: -1 }),
    () => Port.create({ ...wrong, side: "c" as "a" }),
    () => Port.create({ ...wrong, spin: -1 }),
  ];
  for (const call of refused) assertThrows(call);
  assertEquals(new Uint8Array(memory).every((byte) => byte === 0), true);
});

Deno.test("[pipe.close] who was replaced changes no state, and rings", () => {
  for (const state of [0x101, 0x100, 0x102, 9]) {
    const segment = pipeSegment();
    const endpoint = attachEndpoint(segment, 1);
    record(segment, 1)[STATE] = state;
    const before = record(segment, 1)[BELL]!;
    leaveEndpoint(endpoint);
    assertEquals([record(segment, 1)[STATE], record(segment, 1)[BELL]], [state, before + 1]);
  }
});

Deno.test("[segment.state_owner] nobody is marked or closed for the last owner", () => {
  const change = (state: number, generation: number | undefined, stateAfter: number) => {
    for (
      const [call, to] of [
        [(segment: Segment) => closeEndpoint(segment, 1, undefined, generation), stateAfter],
        [
          (segment: Segment) => failEndpoint(segment, 1, "peer.lost", undefined, generation),
          stateAfter === state ? state : 3 | (layout.REASON_PEER_LOST << 8),
        ],
      ] as const
    ) {
      const segment = pipeSegment();
      record(segment, 1)[STATE] = state;
      const isChanged = call(segment);
      assertEquals([isChanged, record(segment, 1)[STATE]], [to !== state, to]);
    }
  };
  change(0x501, 5, 0x502);
  change(0x501, 0x7000005, 0x502); // the low 24 bits
  change(0x501, 4, 0x501);
  change(0x501, 0, 0x501);
  change(0x501, undefined, 0x502); // whoever has it
  change(1, 0, 2);
  change(1, 1, 1);
});

Deno.test("[segment.state_owner] nor in a later attempt, once it was given back", () => {
  const segment = pipeSegment();
  const words = record(segment, 1);
  words[STATE] = 0x501;
  const { compareExchange } = Atomics;
  try {
    Atomics.compareExchange = ((view: Int32Array, at: number, from: number, to: number) => {
      words[STATE] = 0x601; // the next owner
      return compareExchange(view, at, from, to);
    }) as typeof compareExchange;
    assertEquals([failEndpoint(segment, 1), words[STATE]], [false, 0x601]);
  } finally {
    Atomics.compareExchange = compareExchange;
  }
});

Deno.test("[ring.start_again] once vacated, an end begins where its cursor stands", () => {
  for (const [generation, first] of [[0, 64], [1, 112], [0x1000000, 112]] as const) {
    const segment = pipeSegment({ start: 64 });
    const control = segment.words(segment.channels[0]!.controlOffset, 512);
    control[layout.RING_TAIL_WORD] = control[layout.RING_HEAD_WORD] = 112 + 7;
    for (const index of [0, 1]) {
      record(segment, index)[layout.ENDPOINT_GENERATION_WORD] = generation;
    }
    const [writer, reader] = [Writer.attach(segment), Reader.attach(segment)];
    control[layout.RING_HEAD_WORD] = control[layout.RING_TAIL_WORD] = first;
    assertEquals([writer.tryWrite(7), reader.tryRead()], [true, 7]);
    assertEquals(control[layout.RING_HEAD_WORD], first + 32);
  }
});

Deno.test("[wait.spin_record] who waits for a peer that is vacant spends no spin on it", () => {
  const segment = pipeSegment();
  const endpoint = attachEndpoint(segment, 1, { spin: 5 });
  const no = () => false;
  const what = { peer: 0, look: no, arm() {}, stayArmed() {}, disarm() {} };
  const wait = (times: number) => {
    for (let i = 0; i < times; i++) waitFor(endpoint, what, performance.now() + 0.1);
    return pays(endpoint.spinner);
  };
  assertEquals(wait(10), true);
  attachEndpoint(segment, 0);
  assertEquals(wait(10), false);
});
