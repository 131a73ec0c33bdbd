/**
 * The runtime's own `BroadcastChannel`, one object for each reader. That of Deno loses messages of
 * which some hundred are unread, and says nothing: there, all are to be taken before the next ones.
 *
 * @module
 */
import { fanoutPeer } from "../fanout_peer.ts";
import { valuesOf } from "../payload.ts";

export default fanoutPeer((scenario, readers) => {
  const name = `millrace-${crypto.randomUUID()}`;
  const channel = new BroadcastChannel(name);
  const values = valuesOf(scenario);
  return {
    gears: Array.from({ length: readers }, () => ({ value: name })),
    turns: true,
    ..."Deno" in globalThis ? { window: 0 } : {},
    send: (number) => channel.postMessage(values.with(number)),
    close: () => channel.close(),
  };
}, (gear, scenario) => {
  const channel = new BroadcastChannel(gear as string);
  const values = valuesOf(scenario);
  return {
    kind: "events",
    listen: (take) => channel.onmessage = ({ data }) => take(values.numberOf(data)),
    close: () => channel.close(),
  };
});
