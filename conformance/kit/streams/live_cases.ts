/**
 * The live runs over streams that every pair of testees must do.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import { type Part, treeCount, type Trees } from "../live_plan.ts";
import type { TransportKind } from "../protocol.ts";
import type { KitCase } from "../verdict.ts";
import { streamLiveCase, type StreamPlan } from "./live.ts";
import { streamLiveValues } from "./live_values.ts";
import type { Damage } from "./relay.ts";

const SMALL = { largest: 128, window: 512 };
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
      sizes: transport === "tcp" ? USUAL : SMALL,
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
  trees("calls_small", "Trees of calls through the smallest window.", SMALL, "tcp", {
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
    sizes: SMALL,
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
