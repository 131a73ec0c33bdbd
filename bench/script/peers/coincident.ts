/**
 * `coincident`: a worker that calls functions of the main thread, and blocks meanwhile.
 *
 * @module
 */
import coincident from "coincident/main";
import type { Order, Peer, Report } from "../peer.ts";
import type { Player } from "../place.ts";

/** What is used of a worker of the library. */
type Caller = Worker & { proxy: Record<string, (value: unknown) => unknown> };

const peer: Peer = {
  decline({ name, ends, wait, pin, direction }, place) {
    if (place.name === "node") return "needs the workers of the web";
    if (name !== "echo" && name !== "call") return "only calls";
    if (direction !== undefined && direction !== "down") return "measured with calls one way";
    if (ends !== "workers") return "only a worker can block, and only for the main thread";
    return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
  },
  prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
  open() {
    throw new Error("Cannot open: the worker belongs to the library");
  },
  async startPlayer(place): Promise<Player> {
    const { Worker } = coincident() as unknown as { Worker: new (url: string) => Caller };
    const worker = new Worker(place.moduleUrl("coincident_worker"));
    worker.proxy.answer = (value) => value;
    // What is called before the worker has set it is an error there.
    await new Promise<void>((resolve) => worker.proxy.ready = () => resolve());
    return {
      async play(order: Order) {
        const report = await worker.proxy.play!(order) as Report;
        return { ...report, notes: [...report.notes ?? [], "a worker and the main thread"] };
      },
      close: () => worker.terminate(),
    };
  },
  alone: true,
};

export default peer;
