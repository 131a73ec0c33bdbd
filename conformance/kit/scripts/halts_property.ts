/**
 * What a reader of a property does when the writer is faster, each time.
 *
 * @module
 */

import { ATTACHED, type Pipe, VACANT } from "../../reference/builder.ts";
import {
  gives,
  property,
  SLOT_COUNT,
  type SlotPlan,
  text,
} from "../../reference/builder_property.ts";
import { fieldOf, limitOf, valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import type { Move, Step } from "../race_orders.ts";
import { Cannot } from "../racer.ts";
import { halted, whileHalted } from "./halts.ts";
import type { Script } from "./stage.ts";
import { Watch } from "./watch.ts";

const VALUE = { codec: valueOf("codec", "text"), value: "the same in each slot" };
/** So many times it is overtaken at least, before it may say that it is `property.busy`. */
const TIMES = limitOf("property_tries_min") - 1;

export const PROPERTY_HALTS: Script[] = [
  halted({
    id: "scripted/halt_property",
    about:
      "A reader is overtaken each time that it has loaded `version`, as often as it must bear.",
    clauses: ["property.again", "property.whole", "property.fault"],
    role: "property_reader",
    noun: "property",
    play: overtaken,
  }),
];

/**
 * Overtakes at each load of `version`: the slot that is read next is that of another version by
 * then. A reader that loads `version` twice for each of its tries begins half as often.
 */
async function overtaken(arena: Arena): Promise<void> {
  const slots: Record<number, SlotPlan> = {};
  for (let version = 1; version <= SLOT_COUNT; version++) {
    slots[version % SLOT_COUNT] = { ...VALUE, sequence: version };
  }
  const plan = property({ states: [ATTACHED, VACANT], version: 1, slots });
  const memory: Pipe = { ...plan, at: [] };
  const version = plan.control + fieldOf("property_control", "version").offset >> 2;
  const sequence = fieldOf("property_slot", "sequence").offset;
  const moves = Array.from({ length: TIMES }, (_, at): Move => {
    const read = at + 1;
    const slot = plan.slots[read % SLOT_COUNT]! + sequence >> 2;
    const steps: Step[] = [{ store: [[slot, read + SLOT_COUNT], [version, read + 1]] }];
    return { word: 0, at, steps };
  });
  await Watch.on(arena, memory, { role: "property_reader", channel: 0 }, async (watch) => {
    const getting = async () => await watch.session.register.get();
    const { got, counts } = await whileHalted(watch.field, { words: [version], moves }, getting);
    if (counts[0] === 0) throw new Cannot("the kit does not see the testee load `version`");
    const must = gives(TIMES + 1, text(VALUE.value));
    watch.expect(got, must, `[property.again] a value that was overtaken ${TIMES} times`);
  });
}
