/**
 * A writer that dies at any instruction leaves only whole published messages visible.
 *
 * Every store that the real writer makes to shared memory is recorded, bulk copies byte by byte;
 * then every prefix of that log is replayed to a fresh image, which a fresh reader must be able to
 * read: a prefix of what was written, in order, and nothing else.
 */

import { assert, assertEquals } from "@std/assert";
import { random } from "./fixture.ts";
import { Segment } from "../memory/segment.ts";
import { abandon, finish as finishClaim, publish, tryClaim } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";
import { Reader, Writer } from "../pipe/ends.ts";

/** A store of 1 or 4 bytes, or a reading of what there was at this point. */
type Step = { at: number; size: 1 | 4; value: number } | "read";

const original = { ...atomics() };
const targets = new WeakMap<object, { view: Int32Array; base: number }>();

function atomics() {
  const { load, store, exchange, add, or, compareExchange, notify } = Atomics;
  return { load, store, exchange, add, or, compareExchange, notify };
}

/** A segment whose views record what is stored through them. */
function recording(real: Segment, log: Step[]): Segment {
  const { memory, size, endpointCount, channels, shared } = real;
  const wrap = <V extends Int32Array | Uint8Array>(view: V, base: number): V => {
    const width = view.BYTES_PER_ELEMENT as 1 | 4;
    const proxy = new Proxy(view, {
      get(target, key) {
        if (key === "set") {
          return (source: ArrayLike<number>, to = 0) =>
            Array.from(source).forEach((value, i) => {
              target[to + i] = value;
              log.push({ at: base + (to + i) * width, size: width, value: target[to + i]! });
            });
        }
        if (key === "subarray") throw new Error("Stores through a subarray are not recorded");
        return Reflect.get(target, key, target);
      },
      set(target, key, value) {
        log.push({ at: base + Number(key) * width, size: width, value });
        target[Number(key)] = value;
        return true;
      },
    });
    if (view instanceof Int32Array) targets.set(proxy, { view, base });
    return proxy;
  };
  const segment = {
    memory,
    size,
    endpointCount,
    channels,
    shared,
    control: wrap(real.control, 0),
    area: wrap(real.area, 0),
  };
  return segment as unknown as Segment;
}

/** Runs a workload while atomic operations on recording views are recorded too. */
function withAtomics(log: Step[], run: () => void): void {
  const wrap =
    (name: keyof typeof original) => (view: Int32Array, at: number, ...rest: number[]) => {
      const target = targets.get(view);
      // deno-lint-ignore no-explicit-any
      const call = original[name] as any;
      if (target === undefined) return call(view, at, ...rest);
      const before = target.view[at];
      const result = call(target.view, at, ...rest);
      const value = target.view[at]!;
      if (name === "store" || value !== before) {
        log.push({ at: target.base + at * 4, size: 4, value });
      }
      return result;
    };
  const names = Object.keys(original) as (keyof typeof original)[];
  try {
    for (const name of names) Object.assign(Atomics, { [name]: wrap(name) });
    run();
  } finally {
    Object.assign(Atomics, original);
  }
}

/** Reads all that there is; a message as its text, an error as its code. */
function drain(reader: Reader, into: string[]): void {
  for (;;) {
    try {
      const value = reader.tryRead();
      if (value === undefined) {
        if (reader.ended && into.at(-1) !== "ended") into.push("ended");
        return;
      }
      into.push(value instanceof Uint8Array ? `bytes ${value.join()}` : JSON.stringify(value));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === undefined) throw error;
      if (code === "peer.closed") {
        if (into.at(-1) !== code) into.push(code);
        return;
      }
      into.push(code);
      assert(code === "message.cancelled" || code === "message.truncated", code);
    }
  }
}

interface Scenario {
  capacity: number;
  start: number;
  seed: number;
  finish: "end" | "owed end" | "close";
}

/** Whole frames, pads, batches, claims, multipart messages and cancels, over several laps. */
function workload(writer: Writer, read: () => void, { seed, finish }: Scenario): void {
  const next = random(seed);
  const bytes = (size: number) => Uint8Array.from({ length: size }, () => next());
  for (let i = 0; i < 14; i++) {
    switch (next() % 6) {
      case 0:
        writer.tryWrite({ i, text: "é".repeat(next() % 20) });
        break;
      case 1:
        writer.tryWrite(bytes(next() % 100));
        break;
      case 2:
        writer.tryWrite(bytes(115 + next() % 25)); // several frames
        break;
      case 3:
        try {
          writeMany(writer, [i, "x", bytes(9), [i]], { timeout: 0 });
        } catch {
          // Full: what was placed stays.
        }
        break;
      case 4: {
        for (let n = next() % 3; n >= 0; n--) {
          const place = tryClaim(writer, 32);
          if (place === undefined) break;
          for (let k = 0; k < 20; k++) place.area[place.offset + k] = next();
          if (n === 1) abandon(writer);
          else finishClaim(writer, 20);
        }
        publish(writer);
        break;
      }
      default:
        try {
          writer.write("m".repeat(700), { timeout: 0 }); // given up: a cancel is owed
        } catch {
          // Expected.
        }
    }
    if (next() % 3 > 0) read();
  }
  if (finish === "owed end") {
    read();
    try {
      writer.write("m".repeat(700), { timeout: 0 });
    } catch {
      // Expected.
    }
  }
  if (finish !== "close") writer.end();
  writer.close();
}

function replay(segment: Segment, log: readonly Step[], length: number): string[] {
  const words = segment.words(0, segment.size);
  const bytes = segment.bytes(0, segment.size);
  const reader = Reader.attach(segment, { spin: 0 });
  const seen: string[] = [];
  for (let i = 0; i < length; i++) {
    const step = log[i]!;
    if (step === "read") drain(reader, seen);
    else if (step.size === 4) words[step.at >> 2] = step.value;
    else bytes[step.at] = step.value;
  }
  drain(reader, seen);
  return seen;
}

Deno.test("a writer that dies at any store leaves only whole published messages", () => {
  let prefixes = 0;
  let messages = 0;
  const seen = new Set<string>();
  const finishes = ["end", "owed end", "close"] as const;
  for (let seed = 1; seed <= 30; seed++) {
    const start = 2 ** 32 - 16 * (seed * 3);
    const scenario = { capacity: 256, start, seed, finish: finishes[seed % 3]! };
    const geometry = { endpoints: 2, channels: [{ writer: 0, reader: 1, ...scenario }] };
    const real = Segment.allocate(geometry);
    const log: Step[] = [];
    const expected: string[] = [];
    const reader = Reader.attach(real, { spin: 0 });
    withAtomics(log, () => {
      const writer = Writer.attach(recording(real, log));
      const read = () => {
        drain(reader, expected);
        log.push("read");
      };
      workload(writer, read, scenario);
    });
    drain(reader, expected);
    let before = 0;
    for (let length = 0; length <= log.length; length++) {
      const got = replay(Segment.allocate(geometry), log, length);
      assertEquals(got, expected.slice(0, got.length), `seed ${seed}, prefix ${length}`);
      assert(got.length >= before, "what was visible stays visible");
      before = got.length;
    }
    assertEquals(before, expected.length);
    prefixes += log.length + 1;
    messages += expected.length;
    for (const each of expected) seen.add(each.replace(/^(bytes|[{["\d]).*/, "$1"));
  }
  for (const kind of ["message.cancelled", "ended", "peer.closed", "bytes"]) {
    assert(seen.has(kind), kind);
  }
  console.log(`  ${prefixes} prefixes, ${messages} messages`);
});

Deno.test("the recorder is not blind: a publish before the payload is caught", () => {
  const channel = { writer: 0, reader: 1, capacity: 256 };
  const geometry = { endpoints: 2, channels: [channel] };
  const real = Segment.allocate(geometry);
  const log: Step[] = [];
  withAtomics(log, () => Writer.attach(recording(real, log)).write({ n: 1 }));
  const { controlOffset } = real.channels[0]!;
  const isTail = (step: Step) => step !== "read" && step.at === controlOffset;
  const wrong = [...log.filter(isTail), ...log.filter((step) => !isTail(step))];
  const outcomes = new Set<string>();
  for (let length = 0; length <= wrong.length; length++) {
    try {
      outcomes.add(JSON.stringify(replay(Segment.allocate(geometry), wrong, length)));
    } catch (error) {
      outcomes.add(String(error));
    }
  }
  assert(outcomes.size > 2);
});
