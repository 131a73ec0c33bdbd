/**
 * The `MWChannel` of `sab-message-port`, for a main thread and a worker: down through shared
 * memory, where the worker blocks, and up through a `MessagePort`.
 *
 * @module
 */
import type { End, Order, Peer } from "../peer.ts";
import { declineSab, loadSab, SabBlocking, SabEvents, type SabPort } from "./sab_message_port.ts";

const peer: Peer = {
  decline(scenario, place) {
    if (scenario.ends !== "main-worker") return "is of a main thread and a worker";
    return declineSab(scenario, place);
  },
  async prepare(_scenario, place) {
    const { MWChannel } = await loadSab(place);
    const channel = new MWChannel("m");
    const [value, transfer] = channel.postInit();
    return { a: { value: channel }, b: { value, transfer } };
  },
  async open({ gear, role, scenario }: Order, place): Promise<End> {
    if (role === "a") return new SabEvents(gear as SabPort, scenario);
    const { MWChannel } = await loadSab(place);
    return new SabBlocking(MWChannel.from(gear), scenario);
  },
};

export default peer;
