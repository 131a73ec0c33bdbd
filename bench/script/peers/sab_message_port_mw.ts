/**
 * The `MWChannel` of `sab-message-port`, for a main thread and a worker: down through shared
 * memory, where the worker blocks, and up through a `MessagePort`.
 *
 * @module
 */
import type { End, Order, Peer } from "../peer.ts";
import { sends } from "../play_stream.ts";
import { declineSab, isOneWay, ORIGINAL, SabBlocking, SabEvents } from "./sab_message_port.ts";
import { type SabPort, SabReader, type SabSource } from "./sab_message_port.ts";

export default mwPeer(ORIGINAL);

/** The peer of a library: its `MWChannel`. */
export function mwPeer(source: SabSource): Peer {
  return {
    decline(scenario, place) {
      if (scenario.ends !== "main-worker") return "is of a main thread and a worker";
      return declineSab(source, scenario, place);
    },
    async prepare(_scenario, place) {
      const { MWChannel } = await source.load(place);
      const channel = new MWChannel("m");
      const [value, transfer] = channel.postInit();
      return { a: { value: channel }, b: { value, transfer } };
    },
    async open(order: Order, place): Promise<End> {
      const { gear, role, scenario } = order;
      if (role === "a") return new SabEvents(gear as SabPort, scenario);
      const { MWChannel } = await source.load(place);
      const port = MWChannel.from(gear);
      if (!isOneWay(scenario)) return new SabBlocking(port, scenario);
      return sends(order) ? new SabEvents(port, scenario) : new SabReader(port, scenario);
    },
  };
}
