/**
 * The floor of `sab-message-port`: what one turn has posted becomes one text, or several if there
 * is much, and goes through shared memory. It is driven by the same code as that library.
 *
 * @module
 */
import { SABMessagePort } from "../bare_turn.ts";
import type { Peer, Role } from "../peer.ts";
import type { BareWait } from "./floor_text.ts";
import { type SabLibrary, sabPeer } from "./sab_message_port.ts";

class LookingPort extends SABMessagePort {
  constructor(side: Role, memory: SharedArrayBuffer) {
    super(side, memory, true);
  }
}

const LOOKING = peerOf({ SABMessagePort: LookingPort });
const SLEEPING = peerOf({ SABMessagePort });

/** The scenarios of its goals. */
const NAMES = ["echo", "stream", "burst", "cold"];

export default turnPeer({ looks: true });

/** The peer, with ends that wait so. */
export function turnPeer({ looks }: BareWait): Peer {
  const peer = looks ? LOOKING : SLEEPING;
  return {
    decline(scenario, place) {
      if (!NAMES.includes(scenario.name)) return "is of the goals of the drop-in";
      if (!looks && (scenario.pin !== "free" || !scenario.fresh)) return "is of fresh threads";
      return peer.decline(scenario, place);
    },
    prepare: peer.prepare,
    open(order, place) {
      const { pin, wait } = order.scenario;
      return (pin === "free" && wait !== "park" ? peer : SLEEPING).open(order, place);
    },
  };
}

function peerOf(library: unknown): Peer {
  return sabPeer({
    decline: () => undefined,
    load: () => Promise.resolve(library as SabLibrary),
  });
}
