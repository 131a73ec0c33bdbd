/**
 * Scripts of a testee that waits for a property, of which the kit is the writer.
 *
 * @module
 */

import { ATTACHED, type Pipe, VACANT } from "../../reference/builder.ts";
import { gives, type Property, property, sets, text } from "../../reference/builder_property.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { Result } from "../../reference/case.ts";
import { failed } from "../../reference/encode.ts";
import { fieldOf, valueOf } from "../../reference/layout.ts";
import type { Script } from "./stage.ts";
import { settles, Watch } from "./watch.ts";

type Arena = Parameters<Script["play"]>[0];

/** How long a call may wait: far longer than any slice. */
const LONG_MS = 5_000;
/** What a wake may take on a machine that does other things, too; below every slice. */
const SOON_MS = 600;
/** The longest slice, and as much. */
const SLICE_MS = 1_000 + SOON_MS;
const TEXT = valueOf("codec", "text");
const READER = 1;

const COMMON = { role: "property_reader", noun: "property", blocks: true } as const;

export const PROPERTY_SCRIPTS: Script[] = [
  {
    ...COMMON,
    id: "scripted/property_rung",
    about: "A reader that waits has its bit set, and again behind each ring that was in vain.",
    clauses: ["property.watch", "property.changed", "property.unwatch"],
    play: rung,
  },
  {
    ...COMMON,
    id: "scripted/property_marked",
    about: "The writer is marked during a wait by somebody who rings nobody: found in a slice.",
    clauses: ["property.slice", "property.gone", "property.stays"],
    play: marked,
  },
  {
    ...COMMON,
    id: "scripted/property_stopped",
    about:
      "The writer stops behind each store of a set: the value before it, and then the new one.",
    clauses: ["property.whole", "property.stays", "property.fault"],
    play: stopped,
  },
];

/** A property that was set once, whose reader is the testee. */
async function play(
  arena: Arena,
  script: (watch: Watch, plan: Property) => Promise<void>,
): Promise<void> {
  const plan = property({
    states: [ATTACHED, VACANT],
    version: 1,
    slots: { 1: { sequence: 1, codec: TEXT, value: "one" } },
  });
  // A watch takes the places of a pipe, of which it needs the bytes alone.
  const memory: Pipe = { ...plan, at: [] };
  await Watch.on(arena, memory, { role: "property_reader", channel: 0 }, async (watch) => {
    watch.expect(await get(watch), gives(1, text("one")), "the first value");
    await script(watch, plan);
  });
}

function get(watch: Watch): Promise<Result> {
  return Promise.resolve(watch.session.register.get());
}

/** Where the bit of the testee is, and what is left when it is taken out. */
function watchers(plan: Property): number {
  return (plan.control + fieldOf("property_control", "watchers").offset) >> 2;
}

/** Waits until the testee asks to be rung. */
async function watched(watch: Watch, plan: Property): Promise<void> {
  const index = watchers(plan);
  const isSet = await watch.until(() =>
    (Atomics.load(watch.field.words(), index) & 1 << READER) !== 0
  );
  watch.demand(isSet, "[property.watch] the bit of the testee is not set");
}

/** Stores what a set stores, or the first of it, in order. */
function store(watch: Watch, plan: Property, version: number, value: string, steps = 5): void {
  const [slot, number] = (sets(plan, version, { codec: TEXT, value }) as {
    set: { offset: number; hex: string }[];
  }).set as [{ offset: number; hex: string }, { offset: number }];
  const bytes = fromHex(slot.hex);
  const words = watch.field.words();
  // The sequence, the rest of the header, half of the value, all of it, and the version.
  const parts = [4, 16, 16 + (value.length >> 1), bytes.length];
  let from = 0;
  for (const to of parts.slice(0, steps)) {
    watch.bytes().set(bytes.subarray(from, to), slot.offset + from);
    from = to;
  }
  if (steps > parts.length) Atomics.store(words, number.offset >> 2, version);
}

async function rung(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    const words = watch.field.words();
    const index = watchers(plan);
    const waiting = watch.session.register.changed(LONG_MS);
    for (let round = 0; round < 3; round++) {
      watch.step = `round ${round}, `;
      await watched(watch, plan);
      Atomics.exchange(words, index, 0);
      watch.ringOther(); // and nothing has changed
    }
    await watched(watch, plan);
    store(watch, plan, 2, "two");
    Atomics.exchange(words, index, 0);
    watch.ringOther();
    watch.step = "behind the ring, ";
    watch.demand(
      await settles(Promise.resolve(waiting), SOON_MS),
      "[property.watch] the wait goes on",
    );
    watch.expect(await waiting, "ok", "the wait");
    const left = Atomics.load(words, index);
    watch.demand(left === 0, "[property.unwatch] the bit of the testee is still set");
    watch.expect(await get(watch), gives(2, text("two")), "the second value");
  });
}

async function marked(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    const waiting = watch.session.register.changed(LONG_MS);
    await watched(watch, plan);
    watch.setState(0, failed("peer.lost"));
    watch.demand(
      await settles(Promise.resolve(waiting), SLICE_MS),
      "[property.slice] the wait goes on, and the writer is marked failed",
    );
    watch.expect(await waiting, { code: "peer.failed", reason: "peer.lost" }, "the wait");
    watch.expect(await get(watch), gives(1, text("one")), "the value that stays");
  });
}

async function stopped(arena: Arena): Promise<void> {
  await play(arena, async (watch, plan) => {
    let before = { version: 1, value: "one" };
    for (let version = 2; version < 12; version++) {
      const value = `the value ${version}`;
      for (let steps = 1; steps <= 5; steps++) {
        watch.step = `version ${version}, ${steps} of 5 stores, `;
        store(watch, plan, version, value, steps);
        const now = steps < 5 ? before : { version, value };
        watch.expect(await get(watch), gives(now.version, text(now.value)), "the value");
      }
      before = { version, value };
    }
  });
}
