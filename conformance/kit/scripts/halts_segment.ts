/**
 * What a creator and an endpoint do between a look at a word and its change; and what stands there
 * when a segment is said to be ready.
 *
 * @module
 */

import { ATTACHED, pipe, VACANT } from "../../reference/builder.ts";
import { buildSegment, put, recordAt } from "../../reference/encode.ts";
import type { Arena } from "../arena.ts";
import { recordWord } from "../peer.ts";
import type { Step, Store } from "../race_orders.ts";
import { Wrong } from "../verdict.ts";
import { halted, whileHalted } from "./halts.ts";
import { BLANK, FORMATTING, GEOMETRY, Ground, LARGE, LEFT_OVER, READY } from "./ground.ts";
import { READY_AT, RIVAL_AGENT, RIVAL_WAKES } from "./ground.ts";
import type { Script } from "./stage.ts";
import { statesOf } from "./watch.ts";

export const SEGMENT_HALTS: Script[] = [
  script(
    "halt_claim",
    "A rival claims the memory behind a look at `ready`: the testee does not format it.",
    ["segment.claim", "segment.await"],
    async (arena) => {
      for (const at of [0, 1, 2]) await rivalClaims(arena, at);
    },
  ),
  script(
    "halt_ready",
    "A segment is looked at as soon as `ready` says so: everything is there.",
    ["segment.publish", "segment.write"],
    readyAtOnce,
  ),
  script(
    "halt_attach",
    "A rival takes the endpoint behind a look at its state: the loser stores nothing.",
    ["segment.attach", "segment.agent", "segment.state_change", "segment.state_tries"],
    async (arena) => {
      for (const role of ["reader", "writer"] as const) {
        for (const at of [0, 1, 2]) await rivalAttaches(arena, role, at);
      }
    },
  ),
];

function script(
  id: string,
  about: string,
  clauses: string[],
  play: (arena: Arena) => Promise<void>,
): Script {
  return halted({ id: `scripted/${id}`, about, clauses, role: "reader", isMapped: true, play });
}

/** Throws unless these words are as they were left. */
function demandAsLeft(ground: Ground, where: string, words: Store[]): void {
  for (const [index, value] of words) {
    const found = ground.load(index);
    if (found === value) continue;
    throw new Wrong(`${where} word ${index} became ${found}, where the kit had left ${value}`);
  }
}

async function rivalClaims(arena: Arena, at: number): Promise<void> {
  const image = new Uint8Array(buildSegment(GEOMETRY).bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    const places = [16, recordAt(0), recordAt(1) + 4, 512].map((place) => place >> 2);
    const left = places.map((index): Store => [index, ground.load(index)]);
    const steps: Step[] = [{ change: [READY_AT, BLANK, FORMATTING] }];
    const moves = [{ word: 0, at, equals: BLANK, steps }];
    const opening = { kind: "create", geometry: GEOMETRY, role: "segment" } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [READY_AT], moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    const isOurs = found.length > 0;
    const must = isOurs ? "segment.unready" : "ok";
    if (got.answer !== must) {
      const what = JSON.stringify(got.answer);
      throw new Wrong(
        `[segment.claim] a rival came first behind look ${at}: create gave ${what}, not ${must}`,
      );
    }
    if (!isOurs) return;
    demandAsLeft(ground, "[segment.claim]", [[READY_AT, FORMATTING], ...left]);
  });
}

async function readyAtOnce(arena: Arena): Promise<void> {
  const segment = buildSegment(LARGE);
  const must = new Int32Array(segment.bytes.buffer, 0, segment.bytes.length >> 2);
  const image = new Uint8Array(segment.bytes.length).fill(LEFT_OVER);
  put(image, 0, "segment_header", "ready", BLANK);
  await Ground.with(arena, image, async (ground) => {
    // All but the byte areas, which stay as they are.
    const indices = [
      ...Array.from({ length: segment.channels[0]!.control >> 2 }, (_, index) => index),
      ...segment.channels.flatMap(({ control }) =>
        Array.from({ length: 128 }, (_, index) => (control >> 2) + index)
      ),
    ];
    const steps = indices.map((load) => ({ load }));
    const moves = [{ word: 0, equals: READY, steps }];
    const opening = { kind: "create", geometry: LARGE, role: "segment" } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [READY_AT], stores: true, moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    if (got.answer !== "ok") throw new Wrong(`create gave ${JSON.stringify(got.answer)}, not ok`);
    const wrong = indices.findIndex((index, nth) => found[nth] !== must[index]! >>> 0);
    if (wrong < 0) return;
    throw new Wrong(
      `[segment.publish] ready, and word ${indices[wrong]} was ${found[wrong]}, not ` +
        `${must[indices[wrong]!]! >>> 0}`,
    );
  });
}

async function rivalAttaches(arena: Arena, role: "reader" | "writer", at: number): Promise<void> {
  const endpoint = role === "reader" ? 1 : 0;
  await Ground.with(arena, pipe({ states: statesOf(role) }).bytes, async (ground) => {
    const [state, wakes, agent] = ["state", "wakes", "agent"].map((name) =>
      recordWord(endpoint, name)
    ) as [number, number, number];
    const rival: Store[] = [[wakes, RIVAL_WAKES], [agent, RIVAL_AGENT]];
    // As a rival does it, who has come first if anybody can tell.
    const steps: Step[] = [{ change: [state, VACANT, ATTACHED] }, { store: rival }];
    const moves = [{ word: 0, at, equals: VACANT, steps }];
    const opening = { kind: "attach", role, endpoint } as const;
    const { got, found } = await whileHalted(
      ground.field,
      { words: [state], moves, isLate: true },
      () => ground.open(opening, undefined, true),
    );
    const must = found.length === 0 ? "ok" : "segment.endpoint";
    const where = `a ${role}, with a rival behind look ${at} at the state: [segment.attach]`;
    if (got.answer !== must) {
      throw new Wrong(`${where} attaching gave ${JSON.stringify(got.answer)}, not ${must}`);
    }
    if (found.length > 0) demandAsLeft(ground, where, [[state, ATTACHED], ...rival]);
  });
}
