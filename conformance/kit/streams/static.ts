/**
 * The static cases of streams, over a transport: the same steps and the same results, while the
 * testee waits for them as it waits for any peer.
 *
 * @module
 */

import { type Setting, settingOf, type StreamCase } from "../../stream/case.ts";
import type { StreamResult, Taken } from "../../stream/case.ts";
import { arriving } from "../../stream/driver.ts";
import { loadStreamCases } from "../../stream/make_cases.ts";
import { sizeOf } from "../../reference/layout.ts";
import type { Drained, MessageCase, Result as Came } from "../../reference/case.ts";
import type { Arena } from "../arena.ts";
import type { Hello } from "../protocol.ts";
import { lacksCarrier, lacksNoun } from "../static_level.ts";
import { type KitCase, PASS, type Result } from "../verdict.ts";
import { patience, StreamStage, within } from "./stage.ts";

/** For what a testee may do before its peer has said anything, or need not do at all. */
const OPEN_MS = 50;

/** Why a testee need not do a case of streams. */
export function lacksStreams(hello: Hello): string | undefined {
  return lacksNoun(hello, "stream") ?? lacksCarrier(hello, "stream") ??
    (hello.streams === undefined ? "does not say how its streams wait" : undefined);
}

/** All static cases of the chapter, as cases of the kit. */
export function streamCases(): KitCase<Arena>[] {
  const cases = loadStreamCases();
  return [...cases.values()].map((entry) => ({
    id: entry.id,
    about: entry.about,
    clauses: entry.clauses,
    declinedBy: lacksStreams,
    run: (arena) => run(entry, settingOf(entry, cases), arena),
  }));
}

async function run(entry: StreamCase, setting: Setting, arena: Arena): Promise<Result> {
  const { own, limit = 4096 } = setting;
  let why: string | undefined;
  await StreamStage.with(arena, { own, peer: undefined, limit }, async (stage) => {
    const { results } = entry.expect;
    for (const index of setting.operations.keys()) {
      why = await perform(stage, setting, index, results);
      if (why !== undefined) return;
      await takeWritten(stage, setting, index, results);
    }
  });
  return why === undefined ? PASS : { status: "unshown", why: [why] };
}

/**
 * A transport takes at once what was written. Where the case has it taken later, and something has
 * come between, it is taken here.
 */
async function takeWritten(
  stage: StreamStage,
  { operations }: Setting,
  index: number,
  results: readonly StreamResult[],
): Promise<void> {
  const operation = operations[index]!;
  if (!("write" in operation) || results[index] !== "ok") return;
  const next = operations.findIndex((each, at) => at > index && "take" in each);
  if (next < 0) return;
  const { sent } = results[next] as Taken;
  if (sent.some((each) => "kind" in each)) return;
  await stage.takes(`operation ${index}`, [operation.write as MessageCase]);
}

/** Does one thing, or says why that cannot be done over a transport. */
async function perform(
  stage: StreamStage,
  setting: Setting,
  index: number,
  must: readonly StreamResult[],
): Promise<string | undefined> {
  const operation = setting.operations[index]!;
  const what = `operation ${index}`;
  if ("arrive" in operation) await stage.sends(...operation.arrive);
  else if ("cut" in operation) await stage.wire.end();
  else if ("take" in operation) {
    const { sent, ...more } = must[index] as Taken;
    const previous = setting.operations[index - 1] ?? {};
    if ("close" in previous) await stage.closes(what, sent);
    else await stage.takes(what, sent, more);
  } else return await call(stage, setting, index, must[index] as Came);
  return undefined;
}

async function call(
  stage: StreamStage,
  setting: Setting,
  index: number,
  must: Came,
): Promise<string | undefined> {
  const operation = setting.operations[index]!;
  const what = `operation ${index}`;
  const before = setting.operations.slice(0, index);
  const isDecided = arriving({ ...setting, operations: before }) >= sizeOf("stream_preface") ||
    before.some((each) => "cut" in each);
  const opened = await within(stage.opened, isDecided ? patience.longMs : OPEN_MS);
  if (opened === undefined) {
    return "read" in operation ? undefined : "it opens no stream before its peer has";
  }
  if (!await stage.hasReturned(OPEN_MS)) return "a write waits that is not to be waited for";
  if ("read" in operation) {
    const { items, end = "more", reason } = must as Drained;
    if (operation.read === true) await stage.reads(what, items, end, reason);
    else for (const item of items) stage.expect(await one(stage), { items: [item] }, what);
  } else if ("post" in operation) stage.posts(operation.post).catch(() => {});
  else if (opened !== "ok") stage.expect(opened, must, what);
  else if ("write" in operation) await stage.writes(what, operation.write, must);
  else if ("end" in operation) stage.expect(await stage.session.end(), must, what);
  // A close belongs to what is taken after it.
  return undefined;
}

async function one(stage: StreamStage): Promise<Drained> {
  const got = await stage.read(patience.longMs);
  return "item" in got ? { items: [got.item] } : { items: [], ...got };
}
