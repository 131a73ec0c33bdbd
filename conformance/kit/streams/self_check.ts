/**
 * Tests the kit's track of streams: a small side of a stream, in this thread, is broken in one
 * place at a time, and each time a case that cites the clause must find it.
 *
 * @module
 */

import { breakPort, type Fault, FAULTS_OF_STREAMS } from "../../testees/broken/faults.ts";
import { smallStream } from "../../testees/broken/small_stream.ts";
import type { Arena } from "../arena.ts";
import { Connection, patience as ofReplies } from "../connection.ts";
import type { Link } from "../link.ts";
import { type KitCase, Trouble } from "../verdict.ts";
import { type Catch, type Control, control, firstFailure } from "../self_check.ts";
import { LocalLink } from "../worker_link.ts";
import { STREAMS } from "./stopping.ts";
import { patience, within } from "./stage.ts";
import { streamCases } from "./static.ts";

/** For a side that is broken, and in this thread. */
const HURRIED_MS = 200;
/**
 * A script sees some faults only if the side has got so far in a while: that its message waits for
 * the transport, say. Where another program had the processor meanwhile, the next round sees them.
 */
const ROUNDS = 3;

/** All that one testee plays. */
function cases(): KitCase<Arena>[] {
  return [...streamCases(), ...STREAMS];
}

/** Tries every fault, or those that are named. */
export async function* catchStreamFaults(
  faults: readonly Fault[] = FAULTS_OF_STREAMS,
): AsyncGenerator<Catch> {
  for (const fault of faults) {
    let caught: Catch["caught"];
    for (let left = ROUNDS; caught === undefined && left > 0; left--) {
      caught = await hurried(() => firstFailure(cases(), fault, streamArena(fault.name)));
    }
    yield caught === undefined ? { fault } : { fault, caught };
  }
  breakPort(undefined, undefined);
}

/** Runs everything without a fault. `wrap` may look at what goes over the link. */
export async function checkGoodStream(wrap: (link: Link) => Link = (link) => link) {
  return await control("none", cases(), streamArena(undefined, wrap)) satisfies Control;
}

function streamArena(
  fault: string | undefined,
  wrap: (link: Link) => Link = (link) => link,
): Arena {
  breakPort(fault, undefined);
  const folder = Deno.makeTempDirSync({ prefix: "millrace-kit-" });
  let connection: Promise<Connection> | undefined;
  return {
    folder,
    connect: () => connection ??= Connection.start(wrap(bounded(new LocalLink(smallStream)))),
    field: () => Promise.reject(new Error("there is no memory in a stream")),
    kill: () => Promise.resolve(void (connection = undefined)),
    close: () => Deno.remove(folder, { recursive: true }),
  };
}

/** A link that waits for no reply longer than it may. */
function bounded(link: Link): Link {
  return {
    send: (command) => link.send(command),
    async next(timeoutMs) {
      const reply = await within(link.next(timeoutMs), timeoutMs);
      if (reply === undefined) throw new Trouble("timeout", "no reply in time");
      return reply;
    },
    notes: () => "",
    kill: () => Promise.resolve(),
  };
}

/** Waits for less than usual: in one thread, whatever comes comes soon. */
async function hurried<T>(play: () => Promise<T>): Promise<T> {
  const before = [{ ...patience }, { ...ofReplies }] as const;
  Object.assign(patience, { longMs: HURRIED_MS, soonMs: HURRIED_MS });
  ofReplies.replyMs = HURRIED_MS;
  try {
    return await play();
  } finally {
    Object.assign(patience, before[0]);
    Object.assign(ofReplies, before[1]);
  }
}
