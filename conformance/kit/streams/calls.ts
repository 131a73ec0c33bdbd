/**
 * Scripts of streams: what a side keeps that serves calls, for a peer that reads nothing.
 *
 * @module
 */

import { calls, CANCELS, frame as frameOf, MORE, refuses } from "../../reference/builder_call.ts";
import type { Item } from "../../reference/case.ts";
import { extentOf, kindOf } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import { credit, frame, SMALL, stated } from "../../stream/builder.ts";
import type { Arena } from "../arena.ts";
import type { Hello } from "../protocol.ts";
import { type StreamScript, streamScript } from "./script.ts";
import { patience, StreamStage } from "./stage.ts";

/** What the side under test states: so that many short messages can be on their way to it. */
const OWN = { largest: 128, window: 2048 };
const OPENING = { own: OWN, peer: SMALL, calls: true, values: true, serves: true } as const;
/** Bytes of the frame of an item: its list has one number of a few digits. */
const ITEM_EXTENT = extentOf(8 + 8 + 4);
/** Bytes of the largest message that the peer takes in one frame. */
const FULL_SIZE = SMALL.largest - 16;
/** A queue of more than so many bytes is not filled by items in a reasonable time. */
const QUEUE_MAX = 1 << 20;

export const CALL_SCRIPTS: StreamScript[] = [
  streamScript(
    "pieces_unread",
    "Room for thousands of items, and no credit: no more are made than the side accepts.",
    "call.next_item call.cancelled stream.credit_kept",
    piecesUnread,
    { declinedBy },
  ),
];

function declinedBy({ nouns, lacks = [] }: Hello): string | undefined {
  if (!nouns.includes("call")) return "does not offer call";
  return lacks.includes("later") ? "lacks later" : undefined;
}

/** How many bytes the side accepts for which there is no credit. */
async function acceptedBy(arena: Arena): Promise<number> {
  let accepted = 0;
  await StreamStage.with(arena, OPENING, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(OWN)]);
    const payload = { hex: "00 ".repeat(FULL_SIZE).trim() };
    // A side that waits for nothing when it is opened may not have seen what its peer states.
    await stage.writes("a first write", payload);
    let isFull = false;
    while (!isFull && accepted < QUEUE_MAX) {
      isFull = await stage.session.write(payload, false) !== "ok";
      accepted += SMALL.largest;
    }
  });
  return accepted;
}

async function piecesUnread(arena: Arena): Promise<string | void> {
  const accepted = await acceptedBy(arena);
  if (accepted >= QUEUE_MAX) return "it accepts more than items fill in a reasonable time";
  const most = Math.ceil((accepted + SMALL.window) / ITEM_EXTENT) + 2;
  await StreamStage.with(arena, OPENING, async (stage) => {
    await stage.ready();
    await stage.takes("the preface", [stated(OWN)]);
    const send = async (plan: ReturnType<typeof calls>) => {
      const hex = frame(plan);
      const isFree = () => stage.ahead + hex.length / 2 <= OWN.window;
      for (let left = 100; left > 0 && !isFree(); left--) await stage.read(1);
      await stage.sends(hex);
    };
    await send(calls(1, "count", { json: 4 * most }));
    const grants = Math.ceil(2 * most / limitOf("call_grant"));
    for (let count = 0; count < grants; count++) await send(frameOf("call", 1 + MORE));
    await stage.read(1);
    await send(frameOf("call", 1 + CANCELS));
    let items = 0;
    let answer: Item | undefined;
    let given = 0;
    const deadline = performance.now() + 2 * patience.longMs;
    while (answer === undefined && items <= most && performance.now() < deadline) {
      await stage.read(1);
      const { sent } = await stage.collects((each) => each.length > 0, 10);
      for (const each of sent) {
        if (!("kind" in each)) continue;
        if (each.kind === kindOf("return") && each.tag === 1 + MORE) items++;
        else answer = each;
      }
      if (stage.taken > given) await stage.sends(credit(given = stage.taken));
    }
    const fact = `${items} items came of a side that accepts ${accepted} bytes`;
    stage.demand(items <= most, `[call.next_item] ${fact}`);
    const got = { items: answer === undefined ? [] : [answer] };
    stage.expect(got, { items: [refuses(1, "call.cancelled")] }, "[call.cancelled] the answer");
  });
}
