/** The worker of the peer `coincident`: it asks, and the main thread answers. @module */
import coincident from "coincident/worker";
import { CallingEnd } from "./calling_end.ts";
import type { Order } from "./peer.ts";
import { playOf } from "./plays.ts";

const { proxy } = await (coincident as () => Promise<{
  proxy: Record<string, (...values: never[]) => unknown>;
}>)();

proxy.play = (order: Order) => {
  const end = new CallingEnd(order.scenario, proxy.answer as (value: unknown) => unknown);
  return playOf(order.scenario)(end, order, undefined as never);
};
proxy.ready!();
