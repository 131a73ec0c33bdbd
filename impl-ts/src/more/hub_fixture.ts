/** What the threads of `hub_worker_test.ts` have in common. */

import { pattern, random } from "../testing/fixture.ts";
import type { Hub } from "./hub.ts";
import type { Port } from "../port/port.ts";

/** The bound of every wait. */
export const WAIT = { timeout: 60_000 };

/** The messages of one client: JSON, and bytes of one frame or of several. */
export function messages(endpoint: number, count: number): unknown[] {
  const next = random(endpoint);
  return Array.from(
    { length: count },
    (_, n) => next() % 4 === 0 ? pattern(next() % 900, n) : { endpoint, n },
  );
}

/** Sends everything back until every client has ended. Returns how many messages there were. */
export function echoAll(hub: Hub): number {
  let count = 0;
  for (let port; (port = hub.select(WAIT)) !== undefined;) count += echoOne(port);
  return count;
}

/** `echoAll` on an event loop. */
export async function echoAllAsync(hub: Hub): Promise<number> {
  let count = 0;
  for (let port; (port = await hub.selectAsync(WAIT)) !== undefined;) count += echoOne(port);
  return count;
}

/** Sends one message back, or closes a port that has ended. Returns how many messages it sent. */
export function echoOne(port: Port): number {
  const message = port.tryRead();
  if (message !== undefined) {
    port.write(message, WAIT);
    return 1;
  }
  if (!port.ended) throw new Error("a port that was selected has nothing");
  port.end();
  port.close();
  return 0;
}
