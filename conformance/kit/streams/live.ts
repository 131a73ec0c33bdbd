/**
 * Runs two testees that meet over a stream, with the kit between them, and judges what each of
 * them reports.
 *
 * @module
 */

import type { Problem } from "../../static/difference.ts";
import { answerOf } from "../../static/remote.ts";
import { StreamPeer } from "../../stream/taker.ts";
import { preface } from "../../stream/builder.ts";
import { concat, fromHex } from "../../reference/bytes.ts";
import type { Sizes } from "../../stream/case.ts";
import type { Arena } from "../arena.ts";
import { patience } from "../connection.ts";
import { digest, type LivePlan, type Part } from "../live_plan.ts";
import { type End, judgeParts, limitOf, runPart, TIMEOUT_MS } from "../live_level.ts";
import type { Hello, Opening, Ran, TransportKind, Wait } from "../protocol.ts";
import { lacksNoun, lacksOption } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, Wrong } from "../verdict.ts";
import { openDock, type Wire } from "./dock.ts";
import { type Damage, Relay, type RelayPlan } from "./relay.ts";
import { isAll, lacksTransport, places } from "./script.ts";
import { sleep, within } from "./bounds.ts";
import { patience as ofSteps } from "./stage.ts";
import { lacksStreams } from "./static.ts";

/** A live run over a stream; `wait` of its parts is what each testee prefers. */
export interface StreamPlan extends Omit<LivePlan, "on" | "spin" | "capacity"> {
  on: "port" | "call";
  transport: TransportKind;
  /** What both sides state. */
  sizes: Sizes;
  /** That of the workload; twice the largest frame where it is left out. */
  capacity?: number;
  relay?: RelayPlan;
  /** The damage of a sweep, done at one byte after the other, each in a run of its own. */
  damages?: Damage["kind"];
  /** By which calls both wait, where it is not those that they prefer. */
  wait?: Wait;
}

/**
 * How long each wait may take where nothing comes any more, and nobody says so. On a busy machine
 * the shorter ones are over before all has come that does: what is wrong has to be so with each.
 */
const STOPPED_MS = [120, 1_200, ofSteps.longMs];
/** Runs of a sweep, where it is not one for every byte. */
const SOME = 8;

/** Makes a case of the kit. */
export function streamLiveCase(plan: StreamPlan, death: string): KitCase<Arena> {
  const { id, about, clauses } = plan;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) => whyNot(plan, hello),
    run: async (arena) => {
      const problems = plan.damages === undefined
        ? await runOnce(plan, arena, death)
        : await runSweep(plan, plan.damages, arena);
      return problems.length === 0 ? PASS : failed(clauses, problems);
    },
  };
}

function whyNot({ on, transport, wait }: StreamPlan, hello: Hello): string | undefined {
  if (!hello.levels.includes("live")) return "does not run live";
  return lacksStreams(hello) ?? lacksTransport(hello, transport) ??
    (on === "call" ? lacksNoun(hello, "call") ?? lacksOption(hello, ["later"]) : undefined) ??
    (wait === undefined || hello.streams!.waits.includes(wait)
      ? undefined
      : `does not wait by ${wait} in streams`);
}

/** How two testees open a stream. */
export interface JoinPlan extends Pick<StreamPlan, "on" | "transport" | "sizes" | "capacity"> {
  /** What else each of them is told. */
  opening?: (hello: Hello, index: number) => Partial<Opening>;
}

/** The two ends of a stream, opened, and the kit between them. */
export interface Joint {
  ends: End[];
  /** What came of opening them. */
  opened: Awaited<ReturnType<typeof answerOf>>[];
  relay: Relay;
}

/** Two testees open a stream; the relay begins at once. */
export async function join(
  plan: JoinPlan,
  arena: Arena,
  relayed: RelayPlan,
  openMs: number,
): Promise<Joint> {
  const connections = [await arena.connect(0), await arena.connect(1)];
  const ends = connections.map((connection): End => ({
    connection,
    handle: connection.newHandle(),
  }));
  const docks = [await dockOf(plan, arena), await dockOf(plan, arena)];
  const opening = ends.map(({ connection, handle }, index) =>
    connection.send({
      command: "open",
      handle,
      carrier: "stream",
      ...docks[index]!.transport,
      kind: "attach",
      role: "port",
      ...plan.sizes,
      limit: limitOf(capacityOf(plan)),
      calls: plan.on === "call",
      values: plan.on === "call",
      ...(plan.on === "call" && { serves: true }),
      ...plan.opening?.(connection.hello, index),
      timeout_ms: openMs,
    }, patience.replyMs + openMs).then(answerOf)
  );
  opening.forEach((each) => each.catch(() => {}));
  const wires: Wire[] = [];
  for (const [index, dock] of docks.entries()) {
    const wire = await within(dock.wire, ofSteps.longMs);
    if (wire === undefined) throw new Wrong(`testee ${index + 1} does not connect`);
    wires.push(wire);
  }
  const relay = new Relay(wires[0]!, wires[1]!, relayed);
  const opened = await Promise.all(opening);
  docks.forEach((dock) => dock.close());
  return { ends, opened, relay };
}

function dockOf({ transport }: JoinPlan, arena: Arena) {
  return openDock(transport, arena.folder!);
}

function capacityOf({ sizes, capacity = 2 * sizes.largest }: JoinPlan): number {
  return capacity;
}

/** The plan of these two testees: each waits as it prefers. */
function settled(plan: StreamPlan, ends: End[]): LivePlan {
  const [first, second] = ends.map(({ connection }) =>
    plan.wait ?? connection.hello.streams!.waits[0]!
  );
  return {
    ...plan,
    spin: 0,
    capacity: capacityOf(plan),
    first: { ...plan.first, wait: first! },
    second: { ...plan.second, wait: second! },
  };
}

async function runOnce(plan: StreamPlan, arena: Arena, death: string): Promise<Problem[]> {
  const { ends, opened, relay } = await join(plan, arena, plan.relay ?? {}, ofSteps.longMs);
  try {
    requireOpen(opened);
    const live = settled(plan, ends);
    const running = ends.map((end, index) => runPart(live, index, end, TIMEOUT_MS));
    for (const part of running) part.catch(() => {});
    if (plan.kills !== undefined) await killOne(plan.kills, arena, relay);
    const rans = await together(running);
    const problems = judgeParts(live, rans, death);
    // Together: who has closed may wait for the other one to do so, too.
    await Promise.all(ends.map(async ({ connection, handle }, index) => {
      if (index !== plan.kills) await connection.must({ command: "drop", handle });
    }));
    return problems;
  } finally {
    await relay.close();
  }
}

/** Throws unless both ends are open. */
export function requireOpen(opened: Joint["opened"]): void {
  for (const [index, answer] of opened.entries()) {
    if (answer === "ok") continue;
    throw new Wrong(`testee ${index + 1} cannot open its end: ${JSON.stringify(answer)}`);
  }
}

/** Waits until messages flow, and ends one of the two in the middle of its task. */
async function killOne(index: number, arena: Arena, relay: Relay): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (relay.handed < 4_000 && performance.now() < deadline) await sleep(2);
  await arena.kill(index);
}

/** Ends of a task that something was done to. */
const ENDS = /^(?:done|ended|wait\.timeout|(?:peer|pipe|frame|stream|message)\.\w+)$/;

/** Runs again and again, each time with the damage at another byte. */
async function runSweep(
  plan: StreamPlan,
  kind: Damage["kind"],
  arena: Arena,
): Promise<Problem[]> {
  const size = await sizeOf(plan, arena);
  const problems: Problem[] = [];
  for (const at of places(size, isAll() ? size : SOME, plan.seed)) {
    let found: string[] = [];
    for (const boundMs of kind === "stop" ? STOPPED_MS : [ofSteps.longMs]) {
      found = await runDamaged(plan, { kind, at }, arena, boundMs);
      if (found.length === 0) break;
    }
    problems.push(
      ...found.map((text) => ({ text: `${kind} at byte ${at}: ${text}`, clauses: [] })),
    );
    if (problems.length > 0) break;
  }
  return problems;
}

/** How many bytes the first testee sends where nothing is done to them. */
async function sizeOf(plan: StreamPlan, arena: Arena): Promise<number> {
  return (await runBounded(plan, { kind: "end", at: Infinity }, arena, ofSteps.longMs)).size;
}

/** What came of a run that something was done to. */
interface Damaged {
  rans: (Ran | undefined)[];
  opened: Joint["opened"];
  live: LivePlan;
  /** Bytes that the first testee has sent; whole messages before the damage. */
  size: number;
  whole: number;
}

/** Runs with the damage; each wait of a testee takes so long at most. */
async function runBounded(
  plan: StreamPlan,
  damage: Damage,
  arena: Arena,
  boundMs: number,
): Promise<Damaged> {
  const { ends, opened, relay } = await join(plan, arena, { damage }, boundMs);
  try {
    const live = settled(plan, ends);
    const open = [0, 1].filter((index) => opened[index] === "ok");
    const rans: Damaged["rans"] = [undefined, undefined];
    await together(open.map(async (index) => {
      rans[index] = await runPart(live, index, ends[index]!, boundMs);
    }));
    await relay.close(); // nobody is to linger for a peer that cannot be heard
    await Promise.all(open.map(async (index) => {
      const { connection, handle } = ends[index]!;
      await connection.must({ command: "drop", handle });
    }));
    const all = concat(relay.seen);
    return { rans, opened, live, size: all.length, whole: wholeIn(plan, all, damage.at) };
  } finally {
    await relay.close();
  }
}

/** How many messages the first testee has sent whole before some byte. */
function wholeIn({ sizes }: StreamPlan, bytes: Uint8Array, at: number): number {
  const peer = new StreamPeer();
  peer.sends(fromHex(preface({ ...sizes, window: 1 << 20 }))); // its credits do not matter here
  const { sent } = peer.take(bytes.subarray(0, at), false, true);
  return sent.filter((each) => "kind" in each).length;
}

async function runDamaged(
  plan: StreamPlan,
  damage: Damage,
  arena: Arena,
  boundMs: number,
): Promise<string[]> {
  const { rans, opened, live, whole } = await runBounded(plan, damage, arena, boundMs);
  const facts: string[] = [];
  for (const [index, answer] of opened.entries()) {
    const code = typeof answer === "string" ? answer : answer.code;
    if (code !== "ok" && !ENDS.test(code)) facts.push(`testee ${index + 1} opens: ${code}`);
    const end = rans[index]?.end;
    if (end !== undefined && !ENDS.test(end)) facts.push(`testee ${index + 1} ends: ${end}`);
  }
  facts.push(...readerFacts(live, live.second, rans[1], whole, damage.kind));
  return facts;
}

/** The reader must have what was whole before the damage, and, where nothing else came, no more. */
function readerFacts(
  live: LivePlan,
  part: Part,
  ran: Ran | undefined,
  whole: number,
  kind: Damage["kind"],
): string[] {
  const { record = [], count = 0 } = ran ?? {};
  const must = digest(live, part, whole, true).record!;
  const facts: string[] = [];
  const wrong = must.findIndex((entry, index) => `${entry}` !== `${record[index]}`);
  if (wrong >= 0) {
    facts.push(`[stream.whole] message ${wrong} of ${whole} that came whole is not delivered`);
  }
  const isMore = kind !== "change" && kind !== "insert" && count > whole;
  if (isMore) facts.push(`[stream.whole] ${count} messages, of which ${whole} came whole`);
  const ends = ran === undefined || ran.end !== "done";
  if (!ends) facts.push("[stream.lost] it is done, although not all has come");
  return facts;
}
