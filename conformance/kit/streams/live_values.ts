/**
 * The live run of codec `cbor` over a stream: see `../live_values.ts`.
 *
 * @module
 */

import { compare, type Problem } from "../../static/difference.ts";
import { RemoteSession } from "../../static/remote.ts";
import type { Drained } from "../../reference/case.ts";
import type { Arena } from "../arena.ts";
import {
  CALL_MS,
  encoded,
  expected,
  lacksValues,
  openingOf,
  VALUE_CLAUSES,
} from "../live_values.ts";
import { VALUE_LIMIT, VALUES } from "../live_values.ts";
import { together } from "../together.ts";
import { failed, type KitCase, PASS, Wrong } from "../verdict.ts";
import { join, type JoinPlan, requireOpen } from "./live.ts";
import { lacksTransport } from "./script.ts";
import { lacksStreams } from "./static.ts";

const TRANSPORT = "unix";
/** Most of the messages are of several frames. */
const SMALL = { largest: 512, window: 2048 };
/** Each is one frame. [stream.try_size] */
const LARGE = { largest: VALUE_LIMIT, window: 2 * VALUE_LIMIT };
/** How long a call waits that is made again. */
const AGAIN_MS = 5;

/** The case. */
export function streamLiveValues(): KitCase<Arena> {
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
