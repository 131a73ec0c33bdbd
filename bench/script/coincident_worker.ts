/** The worker of the peer `coincident`: it asks the main thread, or is asked by it. @module */
import coincident from "coincident/worker";
import { scope } from "../../tools/worker_scope.ts";
import { Control } from "./control.ts";
import type { CallEnd, Order, Report } from "./peer.ts";
import { CallingEnd, playCalls } from "./plays/calls.ts";
import { playOf } from "./plays/plays.ts";

const { proxy } = await (coincident as () => Promise<{
  proxy: Record<string, (...values: unknown[]) => unknown>;
}>)();

async function play(order: Order): Promise<Report> {
  const { scenario, control: memory } = order;
  if (scenario.name !== "calls") {
    const end = new CallingEnd(scenario, proxy.answer as (value: unknown) => unknown);
    return await playOf(scenario)(end, order, undefined as never);
  }
  const control = new Control(memory);
  const end = new WorkerEnd();
  control.addReady();
  // What is called before the main thread offers it is an error there.
  await control.waitUntilReady(2);
  const report: Report = await playCalls(end, order);
  control.addDone();
  return report;
}

scope.onmessage = async ({ data }: MessageEvent<Order>) => {
  try {
    scope.postMessage({ report: await play(data) });
  } catch (error) {
    scope.postMessage({ error: String(error) });
  }
};
scope.postMessage({ report: {} });

/** The end that blocks. */
class WorkerEnd implements CallEnd {
  readonly kind = "calls";
  readonly blocks = true;
  readonly #left: Promise<void>;
  #answer = (number: number) => number + 1;

  /** Offers all at once: the main thread may call before it is served. */
  constructor() {
    this.#left = new Promise((resolve) => {
      const ask = (number: number) => this.#answer(number);
      const nest = (number: number) => this.ask(number) + 1;
      Object.assign(proxy, { ask, nest, leave: () => resolve() });
    });
  }

  serve(answer: (number: number) => number): void {
    this.#answer = answer;
  }

  ask(number: number): number {
    return proxy.ask!(number) as number;
  }

  nest(number: number): number {
    return proxy.nest!(number) as number;
  }

  rest(): Promise<void> {
    return this.#left;
  }

  leave(): void {
    proxy.leave!();
  }

  close(): void {}
}
