/**
 * A drop box: one testee sets an order, and each of the others acknowledges it by setting none in a
 * property of its own, for which the first one waits before it sets the next.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import { toHex } from "../../reference/bytes.ts";
import { buildSegment, NOBODY } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Gotten, Hello, Opening } from "../protocol.ts";
import { lacksNoun, lacksRole } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, type Result } from "../verdict.ts";
import { End, type Seated, TIMEOUT_MS } from "./end.ts";
import { gather } from "./level.ts";

const ROUNDS = 20;
const AREA = 512;
const ID = "live/property_answered";
const CLAUSES = [
  "property.write",
  "property.wake",
  "property.changed",
  "property.watch",
  "property.next",
];

/** Makes the case, for so many testees. */
export function answersCase(seats: number): KitCase<Arena> {
  return {
    id: ID,
    about: "A drop box: each value is acknowledged by none, before the next one comes.",
    clauses: CLAUSES,
    declinedBy: (hello, index) => index === 0 ? whyNot(hello) : undefined,
    async run(arena) {
      const seated = await gather(arena, seats, whyNot);
      return Array.isArray(seated) ? await runAnswers(arena, seated) : seated;
    },
  };
}

/** Each of them reads and writes. */
function whyNot(hello: Hello): string | undefined {
  if (!hello.levels.includes("live")) return "does not run live";
  return lacksNoun(hello, "property") ?? lacksRole(hello, "property_reader") ??
    lacksRole(hello, "property_writer");
}

/** Who has written an order and read the answers, or the other way round. */
interface Side {
  order: End;
  answer: End;
}

async function runAnswers(arena: Arena, seated: Seated[]): Promise<Result> {
  const others = seated.slice(1);
  // The order is written by endpoint 0; of each reader, one endpoint reads that, one writes the
  // answer, and one of the first testee's reads it.
  const endpoints = 1 + 3 * others.length;
  const kind = valueOf("channel_kind", "property");
  const property = (writer: number, name: string) => ({
    ...{ kind, writer, reader: NOBODY, capacity: AREA, label: 0, start: 0, name },
  });
  const answers = others.map((_, index) => property(3 * index + 2, `answer ${index}`));
  const geometry = { endpoints, channels: [property(0, "order"), ...answers] };
  const field = await arena.field({ size: buildSegment(geometry).bytes.length });
  const open = async (seat: Seated, endpoint: number, role: Opening["role"], name: string) => {
    const end = new End(seat, endpoint);
    const creates = endpoint === 0;
    await end.open({
      ...field.place(seat.index),
      kind: creates ? "create" : "attach",
      ...(creates && { geometry }),
      ...{ role, endpoint, property: name, spin_us: 0 },
    });
    return end;
  };
  try {
    const first = seated[0]!;
    const order = await open(first, 0, "property_writer", "order");
    const sides: Side[] = [];
    const readers: End[] = [];
    for (const [index, seat] of others.entries()) {
      const name = `answer ${index}`;
      sides.push({
        order: await open(seat, 3 * index + 1, "property_reader", "order"),
        answer: await open(seat, 3 * index + 2, "property_writer", name),
      });
      readers.push(await open(first, 3 * index + 3, "property_reader", name));
    }
    const facts = await play(order, sides, readers);
    for (const end of [order, ...readers]) await end.drop();
    for (const side of sides) {
      await side.order.drop();
      await side.answer.drop();
    }
    if (facts.length === 0) return PASS;
    return failed(CLAUSES, facts.map((text) => ({ text, clauses: [] })));
  } finally {
    field.release();
  }
}

/** Every wait begins before what it waits for, as far as one testee does one thing at a time. */
async function play(order: End, sides: Side[], readers: End[]): Promise<string[]> {
  const facts: string[] = [];
  for (let round = 1; round <= ROUNDS && facts.length === 0; round++) {
    const hex = toHex(new TextEncoder().encode(`order ${round}`)).replaceAll(" ", "");
    const waits = sides.map((side) => side.order.changed(TIMEOUT_MS));
    await order.write(hex);
    await together(waits);
    for (const [index, side] of sides.entries()) {
      const got = await side.order.must<Gotten>("get");
      const isRight = got.version === round && got.item?.hex === hex;
      if (!isRight) {
        facts.push(`[property.next] reader ${index + 1} has another order than ${round}`);
      }
      const waiting = readers[index]!.changed(TIMEOUT_MS);
      await side.answer.must("clear");
      await waiting;
      const answer = await readers[index]!.must<Gotten>("get");
      const isNone = answer.version === round && answer.item === undefined;
      if (!isNone) facts.push(`[property.write] the answer of reader ${index + 1} is not none`);
    }
  }
  return facts;
}
