/**
 * Libraries that call functions of another thread.
 *
 * @module
 */
import * as comlink from "comlink";
import { Control } from "../control.ts";
import { valuesOf } from "../payload.ts";
import { both, type CallEnd, declineForEvents, type EventEnd, later } from "../peer.ts";
import type { Order, Peer, Report } from "../peer.ts";
import type { Place, Player } from "../place.ts";
import { argumentEnd } from "../plays/calls.ts";
import type { Note } from "../web_worker.ts";
import { prepareChannel } from "./messageport.ts";

/** `comlink`, over a `MessagePort`. */
const overPort: Peer = {
  decline(scenario) {
    const { name } = scenario;
    if (name === "idle" || name === "memory" || name === "load") return "only calls";
    if (scenario.burst !== undefined) return "confirms each message";
    return declineForEvents(scenario);
  },
  prepare: prepareChannel,
  open(order: Order) {
    if (order.scenario.name === "calls") return callingEnd(order.gear as MessagePort);
    return order.role === "a" ? caller(order) : callee(order);
  },
};

/** What both ends expose, on the port on which each calls the other. */
interface Api {
  ask(number: number): number;
  nest(number: number): Promise<number>;
  leave(): void;
}

function callingEnd(port: MessagePort): CallEnd {
  const far = comlink.wrap<Api>(port);
  const left = later();
  return {
    kind: "calls",
    blocks: false,
    serve(ask) {
      const nest = async (number: number) => await far.ask(number) + 1;
      comlink.expose({ ask, nest, leave: () => left.resolve() }, port);
    },
    ask: (number) => far.ask(number),
    nest: (number) => far.nest(number),
    rest: () => left.promise,
    leave: () => far.leave(),
    close: () => port.close(),
  };
}

function caller({ gear, scenario }: Order): EventEnd {
  const values = valuesOf(scenario);
  const { call } = comlink.wrap<{ call(value: unknown): unknown }>(gear as MessagePort);
  let take = (_number: number) => {};
  return {
    kind: "events",
    tells: true,
    send: async (number) => take(values.numberOf(await call(values.with(number)))),
    listen: (wanted) => take = wanted,
    close() {},
  };
}

/** Sends by returning: the value of the last `send` in a call is its answer. */
function callee({ gear, scenario }: Order): EventEnd {
  const port = gear as MessagePort;
  const values = valuesOf(scenario);
  let answer: unknown;
  return {
    kind: "events",
    send: (number) => void (answer = values.with(number)),
    listen(take) {
      const call = (value: unknown) => {
        answer = value;
        take(values.numberOf(value));
        return answer;
      };
      comlink.expose({ call }, port);
    },
    close() {},
  };
}

/** What is used of a worker of `coincident`. */
type Coincident = Worker & { proxy: Record<string, (value: unknown) => unknown> };

/** The worker that was started last, where the main thread has an end of its own. */
let started: Promise<Coincident> | undefined;

/**
 * `coincident`: a worker that calls functions of the main thread, and blocks meanwhile; or is
 * called by it, by promises.
 */
const ofWorker: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "node") return "needs the workers of the web";
    if (name === "calls" && direction !== undefined) {
      if (ends !== "main-worker") return "between a worker and the main thread";
    } else {
      if (name !== "echo") return "only calls";
      if (ends !== "workers") return "only a worker can block, and only for the main thread";
    }
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => both(undefined),
  async open() {
    while (started === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    return mainEnd((await started).proxy);
  },
  startPlayer,
  alone: ({ name }) => name !== "calls",
};

async function startPlayer(place: Place): Promise<Player> {
  const { default: coincident } = await import("coincident/main");
  const { Worker } = coincident() as unknown as { Worker: new (url: string) => Coincident };
  const worker = new Worker(place.moduleUrl("coincident_worker"));
  worker.proxy.answer = (value) => value;
  // Orders and reports go beside the library: the first call shall be one that counts.
  const next = () =>
    new Promise<Report>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Note>) => {
        if ("report" in data) resolve(data.report);
        else reject(new Error(data.error));
      };
    });
  // What is called before the worker has set it is an error there.
  started = next().then(() => worker);
  await started;
  return {
    async play(order: Order) {
      // The main thread waits for it where it plays as well.
      new Control(order.control).addHere();
      worker.postMessage(order);
      const report = await next();
      return { ...report, notes: [...report.notes ?? [], "a worker and the main thread"] };
    },
    close() {
      started = undefined;
      worker.terminate();
    },
  };
}

/** The end of the main thread, which gets promises. */
function mainEnd(proxy: Coincident["proxy"]): CallEnd {
  const left = later();
  return {
    kind: "calls",
    blocks: false,
    serve: (ask) => void Object.assign(proxy, { ask, leave: () => left.resolve() }),
    ask: (number) => proxy.ask!(number) as Promise<number>,
    nest: (number) => proxy.nest!(number) as Promise<number>,
    rest: () => left.promise,
    leave: () => proxy.leave!(undefined) as Promise<unknown>,
    close() {},
  };
}

/** The channel on which the thread of `synckit` says that it serves. */
const STARTED = "synckit-started";

/** `synckit`: a function of another thread that is called as if it were here. */
const asIfHere: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "chromium") return "needs the workers of Node";
    if (name !== "echo" && name !== "calls") return "only calls";
    if (direction !== undefined && direction !== "down") return "measured with calls one way";
    if (ends !== "workers") return "the caller blocks";
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => both(undefined),
  async open({ scenario, isNew }: Order, place) {
    const { createSyncFn } = await import("synckit");
    // It keeps its thread, and returns the same function for the same module.
    const started = isNew ? untilStarted() : undefined;
    const call = createSyncFn(new URL(place.moduleUrl("synckit_worker")));
    await started;
    return argumentEnd(scenario, call as (value: unknown) => unknown);
  },
  alone: true,
};

/** Settles when its thread serves: its first call would begin with the start of that otherwise. */
function untilStarted(): Promise<void> {
  const channel = new BroadcastChannel(STARTED);
  return new Promise((resolve) => {
    channel.onmessage = () => {
      channel.close();
      resolve();
    };
  });
}

/** The peers of this file. */
export const peers = { "comlink": overPort, "coincident": ofWorker, "synckit": asIfHere };
