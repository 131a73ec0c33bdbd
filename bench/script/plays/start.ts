/**
 * From the import of a library to its first answer, and the first use of each of its verbs: each in
 * a worker that has done nothing else, or in a process of its own.
 *
 * @module
 */
import type { Result, Scenario } from "../../contract.ts";
import { makeMove } from "../payload.ts";
import { PATIENCE_MS } from "../peer.ts";
import type { Place, Starter } from "../place.ts";
import type { Library, StartOrder, StartReport, Verb } from "../start_program.ts";

const VERBS: readonly Verb[] = ["readAsync", "postMessage", "readable", "large"];

/** Why this cannot be measured, in a few words; `undefined` if it can. */
export function declineStart(peer: string, { ends }: Scenario, place: Place): string | undefined {
  if (libraryOf(peer, place) === undefined) {
    return peer === "sab-message-port"
      ? "is given with --sab-message-port DIR"
      : "is not measured from its start";
  }
  return ends === "main" && place.startProcess === undefined ? "a page has no process" : undefined;
}

/** Measures one peer, once. */
export async function playStart(peer: string, scenario: Scenario, place: Place): Promise<Result> {
  const value = makeMove(scenario.size);
  const order = { ...libraryOf(peer, place)!, value };
  // The floors have the verbs of the goals alone.
  const verbs = peer.startsWith("floor-") ? [] : VERBS;
  const times = scenario.ends === "main"
    ? await place.startProcess!({ ...order, what: "start" }, PATIENCE_MS)
    : await timeWorkers(order, verbs, place);
  const parts = Object.entries(times).map(([name, ms]): [string, Result] => [
    name,
    { count: 1, elapsed_ns: Math.max(1, Math.round(ms * 1e6)) },
  ]);
  const { sum = 0 } = times;
  return { count: 1, elapsed_ns: Math.round(sum * 1e6), parts: Object.fromEntries(parts) };
}

/** Each in a worker of its own, one after the other. */
async function timeWorkers(
  order: Omit<StartOrder, "what">,
  verbs: readonly Verb[],
  place: Place,
): Promise<Record<string, number>> {
  const times: Record<string, number> = {};
  const starters: Starter[] = [];
  const run = async (what: StartOrder["what"], handoff?: StartReport): Promise<StartReport> => {
    const starter = place.startStarter();
    starters.push(starter);
    const all = { ...order, what, ...handoff && { handoff: handoff.handoff } };
    const report = await starter.run(all, handoff?.transfer ?? [], PATIENCE_MS);
    Object.assign(times, report.times);
    return report;
  };
  try {
    await run("start");
    // The sender stays, as long as its message may be under way.
    const sent = await run("send");
    const transfer = order.library === "native" ? [sent.handoff as Transferable] : [];
    await run("first-event", { ...sent, transfer });
    for (const verb of verbs) await run(verb);
    return times;
  } finally {
    for (const starter of starters) starter.close();
  }
}

/** The library of a peer, and where its module is. */
function libraryOf(peer: string, place: Place): { library: Library; url: string } | undefined {
  switch (peer) {
    case "millrace":
      return { library: "port", url: place.packageUrl("millrace.js") };
    case "millrace-drop-in":
      return { library: "sab", url: place.packageUrl("sab-message-port.js") };
    case "sab-message-port":
      if (place.sabMessagePort === undefined) return undefined;
      return { library: "sab", url: place.moduleUrl("sab-message-port") };
    case "floor-text":
      return { library: "port", url: place.packageUrl(`${peer}.js`) };
    case "floor-turn":
      return { library: "sab", url: place.packageUrl(`${peer}.js`) };
    case "messageport":
      return { library: "native", url: "" };
  }
  return undefined;
}
