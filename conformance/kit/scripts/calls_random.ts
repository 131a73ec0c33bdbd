/**
 * A script of calls by chance: whatever the peer writes, each call gets one answer, and each fault
 * of the peer one report.
 *
 * @module
 */

import { calls, frame, refuses, returns } from "../../reference/builder_call.ts";
import { CANCELS } from "../../reference/builder_call.ts";
import type { Item, MessageCase } from "../../reference/case.ts";
import type { FramePlan } from "../../reference/encode.ts";
import type { Arena } from "../arena.ts";
import { Random } from "../workload.ts";
import type { Script } from "./stage.ts";
import { callScript, CallStage, write } from "./stage_call.ts";

const SEED = 20;
const ROUNDS = 30;
/** Ids that a round may use, each once: a method that is told may answer somewhat later. */
const IDS = 6;

export const RANDOM_CALLS: Script[] = [
  callScript(
    "call_random",
    "Calls, cancels, notices and strays by chance: one answer to each call, and no other.",
    "call.answer call.duplicate call.crossed call.refused call.stray call.unmatched call.cancelled",
    play,
    { mayDecline: ["later"] },
  ),
];

/** What a peer writes about one id, and what must come of it. */
class Peer {
  readonly #random = new Random(SEED);
  readonly #held = new Set<number>();
  frames: FramePlan[] = [];
  answers: Item[] = [];
  reports: string[] = [];

  /** Something about each id. */
  round(): void {
    [this.frames, this.answers, this.reports] = [[], [], []];
    for (let id = 1; id <= IDS; id++) this.#about(id);
  }

  #about(id: number): void {
    const isHeld = this.#held.has(id);
    const make = (plan: FramePlan, answer: Item | undefined) => {
      this.frames.push(plan);
      if (isHeld) this.reports.push("call.duplicate");
      else if (answer !== undefined) this.answers.push(answer);
      else this.#held.add(id);
    };
    switch (this.#random.next() % 9) {
      case 0:
        return make(calls(id, "add", { json: id }, { json: 1 }), returns(id, { json: id + 1 }));
      case 1:
      case 2:
        return make(calls(id, "hold"), undefined);
      case 3:
        return make(calls(id, "none"), refuses(id, "call.method"));
      case 4:
      case 5:
        this.frames.push(write.cancel(id));
        if (this.#held.delete(id)) this.answers.push(refuses(id, "call.cancelled"));
        return;
      case 6:
        this.frames.push(write.more(id), calls(0, "none"));
        this.reports.push("call.method");
        return;
      case 7:
        this.frames.push(write.answer(id, { json: id }));
        this.reports.push("call.answer");
        return;
      default:
        this.frames.push(frame("throw", id + CANCELS));
        this.reports.push("call.form");
    }
  }
}

async function play(arena: Arena): Promise<void> {
  await CallStage.with(arena, { inward: 16_384, outward: 8_192 }, async (stage) => {
    const peer = new Peer();
    for (let round = 0; round < ROUNDS; round++) {
      peer.round();
      stage.step = `round ${round}: `;
      await stage.send(...peer.frames);
      const reports = peer.reports.map((report) => ({ report }));
      await stage.drains("[call.duplicate] [call.stray] [call.unmatched] the reports", reports);
      const { items } = await stage.taken();
      stage.port.expect(
        { items: byTag(items) },
        { items: byTag(peer.answers) },
        "[call.answer] [call.crossed] the answers",
      );
    }
  });
}

function byTag(items: Item[]): Item[] {
  const tag = (item: Item) => (item as MessageCase).tag;
  return items.toSorted((a, b) => tag(a) - tag(b));
}
