// The writer stops after each single store, and another thread gets the value.

import { assert, assertEquals } from "@std/assert";
import { propertyChannel } from "./property.ts";
import { NONE, Slots } from "./slots.ts";
import { steppedSlots, stopAfter, Stopped } from "./stepped_fixture.ts";
import { Segment } from "../memory/segment.ts";
import { NO_WORDS } from "../codec/payload.ts";

const Stepped = await steppedSlots();

/** A value whose bytes are all its number. Its size is words and a rest, or 0. */
function valueOf(n: number): Uint8Array {
  return new Uint8Array(n % 5 === 0 || n % 7 === 0 ? 0 : 4 + n % 11).fill(n);
}

function put(slots: Slots, version: number, n: number): number {
  const bytes = valueOf(n);
  const isAligned = n % 2 === 0;
  const words = isAligned ? new Int32Array(bytes.buffer, 0, bytes.length >> 2) : NO_WORDS;
  return slots.put(version, bytes, words, bytes.length, 0, n % 7 === 0 ? 0 : 1);
}

/** The number of the value that another thread gets; each byte must be that number. */
function get(segment: Segment, of: (version: number) => number): number {
  const slots = Slots.find(segment, 0);
  const target = new Uint8Array(112);
  const size = slots.read(target);
  const n = of(slots.seen);
  if (slots.seen === 0 || n % 7 === 0) assertEquals(size, NONE);
  else assertEquals(target.subarray(0, size), valueOf(n), `version ${slots.seen}`);
  return slots.seen >>> 0;
}

for (const start of [0, 5, -6]) {
  Deno.test(`a writer that stops at any store leaves whole values, from version ${start}`, () => {
    let stops = 0;
    for (let sets = 1; sets <= 9; sets++) {
      for (let steps = 0;; steps++) {
        const channels = [propertyChannel({ writer: 0 })];
        const segment = Segment.allocate({ endpoints: 3, channels });
        const control = segment.words(segment.channels[0]!.controlOffset, 256);
        control[0] = start;
        control[32] = 0b110; // two watchers
        // The slots may hold anything.
        const { dataOffset, dataSize } = segment.channels[0]!;
        segment.bytes(dataOffset, dataSize).fill(0xee);
        const writer = Stepped.find(segment, 0);
        const numbers = new Map<number, number>();
        stopAfter();
        let version = start;
        for (let n = 1; n < sets; n++) {
          version = put(writer, version, n);
          numbers.set(version, n);
        }
        const before = version;
        const next = before + 1 === 0 ? 4 : before + 1;
        numbers.set(next, sets);
        stopAfter(steps);
        let hasStopped = false;
        try {
          put(writer, version, sets);
          writer.wake(() => {}, 3);
        } catch (error) {
          if (!(error instanceof Stopped)) throw error;
          hasStopped = true;
        }
        // At the first set from such a version, the slot of that version holds no value yet.
        if (sets > 1 || start === 0 || Atomics.load(control, 0) !== start) {
          const found = get(segment, (taken) => numbers.get(taken) ?? 0);
          assert([before >>> 0, next >>> 0].includes(found), `${found}`);
          assertEquals(get(segment, (taken) => numbers.get(taken) ?? 0), found);
        }
        // The next writer goes on, and readers find the value that it sets.
        const heir = Slots.find(segment, 0);
        const last = put(heir, heir.version(), 78);
        numbers.set(last, 78);
        get(segment, (taken) => numbers.get(taken) ?? 0);
        stops++;
        if (!hasStopped) break;
      }
    }
    assert(stops > 9 * 12, `only ${stops} stops`);
  });
}

Deno.test("a reader that is overtaken by any store of the fourth value after begins again", () => {
  const { load } = Atomics;
  let overtakes = 0;
  for (let steps = 0;; steps++) {
    const segment = Segment.allocate({ endpoints: 2, channels: [propertyChannel({ writer: 0 })] });
    const writer = Stepped.find(segment, 0);
    const bytes = (n: number) => new Uint8Array(16).fill(n);
    const set = (version: number, n: number) => {
      const value = bytes(n);
      return writer.put(version, value, new Int32Array(value.buffer), 16, 0, 1);
    };
    stopAfter();
    set(0, 1);
    let hasStopped = false;
    // Runs after the reader has loaded the version, which is 1.
    const overtake = () => {
      for (let version = 1; version < 4;) version = set(version, version + 1);
      stopAfter(steps);
      try {
        set(4, 5);
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
        hasStopped = true;
      }
    };
    Atomics.load = ((words: Int32Array, index: number) => {
      const found = load(words, index);
      Atomics.load = load;
      overtake();
      return found;
    }) as typeof Atomics.load;
    const slots = Slots.find(segment, 0);
    const target = new Uint8Array(16);
    try {
      assertEquals(slots.read(target), 16);
    } finally {
      Atomics.load = load;
    }
    assertEquals(target, bytes(slots.seen), `behind ${steps} steps`);
    if (slots.seen !== 1) overtakes++;
    if (!hasStopped) break;
  }
  assert(overtakes > 5, `only ${overtakes} of them`);
});
