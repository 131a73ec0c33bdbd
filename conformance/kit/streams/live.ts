/**
 * Runs two testees that meet over a stream, with the kit between them, and judges what each of
 * them reports.
 *
 * @module
 */

import { concat, fromHex } from "../../reference/bytes.ts";
import type { Drained } from "../../reference/case.ts";
import { compare, type Problem } from "../../static/difference.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import { preface } from "../../stream/builder.ts";
import type { Sizes } from "../../stream/case.ts";
import { StreamPeer } from "../../stream/taker.ts";
import type { Arena } from "../arena.ts";
import { patience } from "../connection.ts";
import { CALL_MS, encoded, expected, lacksValues, openingOf } from "../live/cases.ts";
import { VALUE_CLAUSES, VALUE_LIMIT, VALUES } from "../live/cases.ts";
import { type End, judgeParts, limitOf, runPart, TIMEOUT_MS } from "../live/level.ts";
import { digest, type LivePlan, type Part, treeCount, type Trees } from "../live/plan.ts";
import type { Hello, Opening, Ran, TransportKind, Wait } from "../protocol.ts";
import { lacksNoun, lacksOption } from "../static_level.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, Wrong } from "../verdict.ts";
import { type Damage, openDock, Relay, type RelayPlan, type Wire } from "./dock.ts";
import { isAll, lacksTransport, patience as ofSteps, places, sleep, within } from "./stage.ts";
import { lacksStreams } from "./static.ts";

/** A live run over a stream; `wait` of its parts is what each testee prefers. */
interface StreamPlan extends Omit<LivePlan, "on" | "spin" | "capacity"> {
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
function streamLiveCase(plan: StreamPlan, death: string): KitCase<Arena> {
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
interface JoinPlan extends Pick<StreamPlan, "on" | "transport" | "sizes" | "capacity"> {
  /** What else each of them is told. */
  opening?: (hello: Hello, index: number) => Partial<Opening>;
}

/** The two ends of a stream, opened, and the kit between them. */
interface Joint {
  ends: End[];
  /** What came of opening them. */
  opened: Awaited<ReturnType<typeof answerOf>>[];
  relay: Relay;
}

/** Two testees open a stream; the relay begins at once. */
async function join(
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
function requireOpen(opened: Joint["opened"]): void {
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

// The live run of codec `cbor` over a stream: see `../live/cases.ts`.

const TRANSPORT = "unix";
/** Most of the messages are of several frames. */
const SMALL = { largest: 512, window: 2048 };
/** Each is one frame. [stream.try_size] */
const LARGE = { largest: VALUE_LIMIT, window: 2 * VALUE_LIMIT };
/** How long a call waits that is made again. */
const AGAIN_MS = 5;

/** The case. */
function streamLiveValues(): KitCase<Arena> {
  return {
    id: "live/stream_cbor",
    about: "Values of codec cbor between other messages, in frames that most do not fit.",
    clauses: [...VALUE_CLAUSES, "stream.whole"],
    declinedBy: (hello, index) =>
      lacksStreams(hello) ?? lacksTransport(hello, TRANSPORT) ?? lacksValues(hello, index),
    async run(arena) {
      const problems = await runValues(arena);
      return problems.length === 0 ? PASS : failed(VALUE_CLAUSES, problems);
    },
  };
}

async function runValues(arena: Arena): Promise<Problem[]> {
  // By calls that wait, whoever has no encoder of its own writes bytes alone.
  const encodes = openingOf((await arena.connect(0)).hello, 0).encodes === true;
  const plan: JoinPlan = {
    on: "port",
    transport: TRANSPORT,
    sizes: encodes ? SMALL : LARGE,
    capacity: VALUE_LIMIT / 2,
    opening: openingOf,
  };
  const { ends, opened, relay } = await join(plan, arena, {}, CALL_MS);
  try {
    requireOpen(opened);
    const [writer, reader] = ends.map(({ connection, handle }) =>
      new RemoteSession(connection, handle, "port")
    );
    const [, got] = await together([write(writer!, encodes), read(reader!)]);
    // Together: who has closed may wait for the other one to do so, too.
    await Promise.all(
      ends.map(({ connection, handle }) => connection.must({ command: "drop", handle })),
    );
    return compare(got!, { items: expected(ends[1]!.connection.hello), end: "ended" });
  } finally {
    await relay.close();
  }
}

/** Reads as many as there are, and then the end, which is no event in every port. */
async function read(session: RemoteSession): Promise<Drained> {
  const { items, end } = await session.readMany(VALUES.length, CALL_MS);
  if (end !== undefined) return { items, end };
  const deadline = performance.now() + CALL_MS;
  let last = await session.read(AGAIN_MS);
  while ("end" in last && last.end === "nothing" && performance.now() < deadline) {
    last = await session.read(AGAIN_MS);
  }
  return "item" in last ? { items: [...items, last.item] } : { items, end: last.end };
}

/** Writes all of them; what calls that wait do not take, by others: their credit comes by reads. */
async function write(session: RemoteSession, encodes: boolean): Promise<undefined> {
  for (const [index, each] of VALUES.entries()) {
    const deadline = performance.now() + CALL_MS;
    const waits = encodes && each.cbor !== undefined;
    let answer = await session.write(encoded(each), waits, CALL_MS);
    while (answer === "full" && performance.now() < deadline) {
      await session.read(AGAIN_MS);
      answer = await session.write(encoded(each), false);
    }
    if (answer !== "ok") throw new Wrong(`message ${index}: write gave ${JSON.stringify(answer)}`);
  }
  const answer = await session.end();
  if (answer !== "ok") throw new Wrong(`end gave ${JSON.stringify(answer)}`);
}

// The live runs over streams that every pair of testees must do.

const CASES_SMALL = { largest: 128, window: 512 };
const USUAL = { largest: 2048, window: 8192 };
const KINDS: TransportKind[] = ["unix", "tcp", "fifo"];

const writes: Part = { role: "write", wait: "event", then: "end", end: "done", got: "all" };
const reads: Part = { role: "read", wait: "event", then: "stay", end: "ended", got: "all" };
const drives: Part = { role: "drive", wait: "event", then: "stay", end: "ended", got: "all" };
const echoes: Part = { role: "echo", wait: "event", then: "end", end: "ended", got: "all" };
const slowly = { delay_us: 500, delay_every: 8 };
/** More than anybody can write before it is stopped. */
const ENDLESS = 1_000_000;

const WRITTEN = "stream.frames stream.credit_kept stream.credit_told stream.whole";
const BOTH_WAYS = `${WRITTEN} stream.takes_in stream.between`;

let seeds = 400;

/** Runs over a stream. */
export const STREAM_PLANS: StreamPlan[] = [
  ...KINDS.map((transport) =>
    plan(`echo_${transport}`, `There and back, over ${transport}.`, BOTH_WAYS, {
      transport,
      sizes: transport === "tcp" ? USUAL : CASES_SMALL,
      count: 50,
      first: drives,
      second: echoes,
    })
  ),
  plan("slow_reader", "A reader that is often away: the writer waits for credit.", WRITTEN, {
    count: 100,
    second: { ...reads, ...slowly },
  }),
  plan("slow_writer", "A writer that is often away: the reader waits for more.", WRITTEN, {
    count: 100,
    first: { ...writes, ...slowly },
  }),
  plan("multipart", "Messages of up to three times 4 KiB, through the smallest window.", WRITTEN, {
    sizes: { largest: 2048, window: 2048 },
    count: 60,
  }),
  plan("poll", "Calls that do not wait, on both sides.", `${WRITTEN} stream.try_size`, {
    // No message is larger than a frame: all of them can be written without waiting.
    sizes: USUAL,
    capacity: 512,
    count: 60,
    wait: "poll",
  }),
  plan("pieces", "There and back, cut anywhere, some of it late.", `stream.pieces ${BOTH_WAYS}`, {
    relay: { pieces: 17 },
    count: 30,
    first: drives,
    second: echoes,
  }),
  plan("closed", "A writer that closes: all of it arrives.", "stream.close stream.closed", {
    count: 80,
    first: { ...writes, then: "close" },
    second: { ...reads, end: "peer.closed" },
  }),
  plan("reader_closed", "A reader that closes in the middle.", "stream.hang_up stream.closed", {
    count: ENDLESS,
    first: { ...writes, end: "peer.closed", got: "some" },
    second: { ...reads, count: 40, then: "close", end: "done", got: 40 },
  }),
  plan("writer_killed", "A writer dies: what was whole arrives.", "stream.lost stream.whole", {
    count: ENDLESS,
    kills: 0,
    first: { ...writes, end: "" },
    second: { ...reads, end: "peer.failed", reason: "death", got: "some" },
  }),
  plan("reader_killed", "A reader dies: the writer is not left waiting.", "stream.lost", {
    count: ENDLESS,
    kills: 1,
    first: { ...writes, end: "peer.failed", reason: "death", got: "some" },
    second: { ...reads, end: "" },
  }),
  ...sweeps(),
  trees("calls", "Trees of calls from both sides, beside plain messages.", USUAL, "unix", {
    count: 4,
    depth: 4,
    width: 3,
    plain: true,
  }),
  trees("calls_small", "Trees of calls through the smallest window.", CASES_SMALL, "tcp", {
    count: 3,
    depth: 3,
    width: 3,
  }),
  trees("calls_deep", "Calls within calls, from both sides at once.", USUAL, "unix", {
    count: 1,
    depth: 63,
    width: 1,
  }),
];

/** The cases of the level live; `death` is what a survivor learns. */
export function liveStreams(death: string): KitCase<Arena>[] {
  return [...STREAM_PLANS.map((each) => streamLiveCase(each, death)), streamLiveValues()];
}

function plan(
  id: string,
  about: string,
  clauses: string,
  more: Partial<StreamPlan>,
): StreamPlan {
  return {
    id: `live/stream_${id}`,
    about,
    clauses: clauses.split(" "),
    on: "port",
    transport: "unix",
    sizes: CASES_SMALL,
    seed: ++seeds,
    count: 100,
    first: writes,
    second: reads,
    ...more,
  };
}

/** The same few messages again and again, and something that is done to them. */
function sweeps(): StreamPlan[] {
  const all: [Damage["kind"], string, string][] = [
    ["end", "The bytes end, anywhere.", "stream.lost stream.whole"],
    ["break", "The connection breaks, anywhere.", "stream.lost stream.whole"],
    ["stop", "The bytes stop, anywhere, and nobody says so.", "stream.whole wait.deadline"],
    ["change", "One byte is changed, anywhere.", "stream.check stream.fault stream.whole"],
    ["insert", "Bytes come that nobody has sent.", "stream.check stream.fault stream.whole"],
  ];
  return all.map(([kind, about, clauses]) =>
    plan(`${kind}_places`, about, clauses, { damages: kind, count: 5 })
  );
}

function trees(
  id: string,
  about: string,
  sizes: StreamPlan["sizes"],
  transport: TransportKind,
  { count, ...rest }: Omit<Trees, "seed"> & { count: number },
): StreamPlan {
  const part = (): Part => ({
    role: "tree",
    wait: "event",
    then: "end",
    count,
    trees: { seed: ++seeds, ...rest },
    end: "ended",
    got: "all",
  });
  const [first, second] = [part(), part()];
  first.got = treeCount(first, second);
  second.got = treeCount(second, first);
  const clauses = "call.answer call.match call.refused call.thrown call.takes_in stream.takes_in";
  const more = { on: "call", sizes, transport, count: 2 * count, first, second } as const;
  return plan(id, about, clauses, more);
}
