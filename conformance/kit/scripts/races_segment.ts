/**
 * Races for memory and for endpoints: the kit takes them at the same time as the testee, again and
 * again, and looks at what is formatted as soon as it is said to be ready.
 *
 * @module
 */

import { ATTACHED, pipe, VACANT } from "../../reference/builder.ts";
import { buildSegment, put, recordAt } from "../../reference/encode.ts";
import type { Arena } from "../arena.ts";
import { recordWord } from "../peer.ts";
import type { Order, Store } from "../race_orders.ts";
import { Wrong } from "../verdict.ts";
import { BLANK, FORMATTING, GEOMETRY, Ground, LARGE, LEFT_OVER, READY } from "./ground.ts";
import { READY_AT, RIVAL_AGENT, RIVAL_WAKES } from "./ground.ts";
import { tries } from "./race.ts";
import type { Script } from "./stage.ts";

const TRIES = 60;
const TRIES_MS = 50;
export const SEGMENT_RACES: Script[] = [
  {
    id: "scripted/race_claim",
    about: "Two that create on blank memory: one formats, and the other leaves it alone.",
    clauses: ["segment.claim", "segment.await"],
    role: "segment",
    async play(arena) {
      for (const _ of tries(TRIES, TRIES_MS)) await claims(arena);
    },
  },
  {
    id: "scripted/race_create",
    about: "Two that create the same: the testee finds what the kit has formatted, and uses it.",
    clauses: ["segment.claim", "segment.same_geometry", "segment.await"],
    role: "reader",
    play: findsFormatted,
  },
  {
    id: "scripted/race_attach",
    about: "Two that take one endpoint: one of them has it, and the other stores nothing.",
    clauses: ["segment.attach", "segment.agent", "segment.state_change", "segment.state_tries"],
    role: "reader",
    async play(arena) {
      for (const attempt of tries(TRIES, TRIES_MS)) await attaches(arena, attempt % 2);
    },
  },
  {
    id: "scripted/race_ready",
    about: "A segment is looked at as soon as `ready` says so: everything is there.",
    clauses: ["segment.publish", "segment.write"],
    role: "segment",
    async play(arena) {
      for (const attempt of tries(24, TRIES_MS)) await formats(arena, attempt);
    },
  },
];

async function claims(arena: Arena): Promise<void> {
  const image = new Uint8Array(buildSegment(GEOMETRY).bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // Where the kit has claimed it, nobody else writes there: the size, a record, a cursor.
    const places = [16, recordAt(0), recordAt(1) + 4, 512].map((at) => at >> 2);
    const watched = places.map((index): Store => [index, ground.load(index)]);
    const order: Order = {
      do: "toggle",
      word: READY_AT,
      free: BLANK,
      taken: FORMATTING,
      watched,
    };
    const opening = { kind: "create", geometry: GEOMETRY, role: "segment" } as const;
    const { answer, found: [how, value] } = await ground.open(opening, order);
    const isClaimed = how === 1;
    if (how === 2 || how === 3) {
      throw new Wrong(
        `[segment.claim] the kit had claimed the memory, and ${
          how === 2 ? `\`ready\` became ${value}` : "the testee wrote to it"
        }`,
      );
    }
    const must = isClaimed ? "ok" : "segment.unready";
    if (answer !== must) {
      const who = isClaimed ? "the testee" : "the kit";
      throw new Wrong(
        `[segment.claim] ${who} has claimed the memory, and create gave ` +
          `${JSON.stringify(answer)}, not ${must}`,
      );
    }
    if (isClaimed && ground.load(READY_AT) !== READY) {
      throw new Wrong(`[segment.publish] created, and \`ready\` is ${ground.load(READY_AT)}`);
    }
  });
}

/** The kit has claimed the memory, formats it, and is found at it, and ready. */
async function findsFormatted(arena: Arena): Promise<void> {
  const must = buildSegment({ ...GEOMETRY, states: [ATTACHED] }).bytes;
  await Ground.with(arena, new Uint8Array(must.length).fill(LEFT_OVER), async (ground) => {
    const { field } = ground;
    const words = field.words();
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    Atomics.store(words, READY_AT, FORMATTING);
    const opening = { kind: "create", geometry: GEOMETRY, role: "reader", endpoint: 1 } as const;
    for (const upTo of [0, 64, 512, must.length]) {
      bytes.set(must.subarray(0, Math.min(upTo, 8)));
      bytes.set(must.subarray(12, Math.max(12, upTo)), 12);
      const before = bytes.slice();
      const { answer } = await ground.open(opening);
      const where = `while the kit formats, up to byte ${upTo}: `;
      if (answer !== "segment.unready") {
        throw new Wrong(`${where}[segment.await] create gave ${JSON.stringify(answer)}`);
      }
      const at = bytes.findIndex((byte, index) => byte !== before[index]);
      if (at >= 0) throw new Wrong(`${where}[segment.claim] byte ${at} has changed`);
    }
    Atomics.store(words, READY_AT, READY);
    field.notify(READY_AT);
    const { answer } = await ground.open(opening);
    if (answer !== "ok") {
      throw new Wrong(`[segment.claim] ready, and create gave ${JSON.stringify(answer)}, not ok`);
    }
    const state = ground.load(recordWord(1, "state"));
    if (state !== ATTACHED) throw new Wrong(`[segment.attach] the state is ${state}, not attached`);
  });
}

async function attaches(arena: Arena, endpoint: number): Promise<void> {
  const states = [ATTACHED, ATTACHED];
  states[endpoint] = VACANT;
  await Ground.with(arena, pipe({ states }).bytes, async (ground) => {
    const [state, wakes, agent] = ["state", "wakes", "agent"].map((name) =>
      recordWord(endpoint, name)
    ) as [number, number, number];
    const words = ground.field.words();
    Atomics.store(words, wakes, RIVAL_WAKES);
    Atomics.store(words, agent, RIVAL_AGENT);
    const watched: Store[] = [[wakes, RIVAL_WAKES], [agent, RIVAL_AGENT]];
    const order: Order = { do: "toggle", word: state, free: VACANT, taken: ATTACHED, watched };
    const role = endpoint === 0 ? "writer" : "reader";
    const opening = { kind: "attach", role, endpoint } as const;
    const { answer, found: [how, value] } = await ground.open(opening, order);
    if (how === 2 || how === 3) {
      const what = how === 2 ? `the state became ${value}` : `a word of it became ${value}`;
      throw new Wrong(`[segment.attach] the kit had the endpoint, and ${what}`);
    }
    const must = how === 1 ? "ok" : "segment.endpoint";
    if (answer === must) return;
    const who = how === 1 ? "the testee" : "the kit";
    throw new Wrong(
      `[segment.attach] ${who} has the endpoint, and attaching gave ${JSON.stringify(answer)}`,
    );
  });
}

/** Has a large segment made, and looks at its words at the moment at which it is ready. */
async function formats(arena: Arena, attempt: number): Promise<void> {
  const segment = buildSegment(LARGE);
  const must = new Int32Array(segment.bytes.buffer, 0, segment.bytes.length >> 2);
  const image = new Uint8Array(segment.bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // All but the byte areas, which stay as they are, from the end on.
    const first = segment.channels[0]!.control >> 2;
    const indices = [
      ...Array.from({ length: first }, (_, index) => index),
      ...segment.channels.flatMap(({ control }) => [control >> 2, control + 128 >> 2]),
    ].reverse();
    const order: Order = {
      do: "formed",
      afterUs: attempt % 3 === 0 ? 0 : 100 * (attempt % 8),
      ready: [READY_AT, READY],
      words: indices.map((index): Store => [index, must[index]!]),
    };
    const { answer, found: [wrong, value] } = await ground.open(
      { kind: "create", geometry: LARGE, role: "segment" },
      order,
    );
    if (answer !== "ok") throw new Wrong(`create gave ${JSON.stringify(answer)}, not ok`);
    if (wrong === -1) return;
    throw new Wrong(
      `[segment.publish] ready, and word ${wrong} was ${value}, not ${must[wrong!]! >>> 0}`,
    );
  });
}
