/** The worker of the peer `coincident`: it asks the main thread, or is asked by it. @module */
import coincident from "coincident/worker";
import { scope } from "../../tools/worker_scope.ts";
import { Control } from "./control.ts";
import { type CallEnd, later, type Order, type Report } from "./peer.ts";
import { argumentEnd, playCalls } from "./plays/calls.ts";
import { playOf } from "./plays/plays.ts";

const { proxy } = await (coincident as () => Promise<{
  proxy: Record<string, (...values: unknown[]) => unknown>;
}>)();

async function play(order: Order): Promise<Report> {
  const { scenario, control: memory } = order;
  if (scenario.name !== "calls") {
    const end = argumentEnd(scenario, proxy.answer as (value: unknown) => unknown);
    return await playOf(scenario)(end, order, undefined as never);
  }
  const control = new Control(memory);
  const end = workerEnd();
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

/** The end that blocks. Offers all at once: the main thread may call before it is served. */
function workerEnd(): CallEnd {
  const left = later();
  let answer = (number: number) => number + 1;
  const ask = (number: number) => proxy.ask!(number) as number;
  Object.assign(proxy, {
    ask: (number: number) => answer(number),
    nest: (number: number) => ask(number) + 1,
    leave: () => left.resolve(),
  });
  return {
    kind: "calls",
    blocks: true,
    serve: (wanted) => void (answer = wanted),
    ask,
    nest: (number) => proxy.nest!(number) as number,
    rest: () => left.promise,
    leave: () => void proxy.leave!(),
    close() {},
  };
}
