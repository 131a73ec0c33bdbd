/**
 * Waiting for several ports or readers at once. See `spec/wait.md`.
 *
 * @module
 */

import type { PipeEnd, WaitOptions } from "../pipe/options.ts";
import type { Reader } from "../pipe/ends.ts";
import type { StreamPort } from "../port/over_stream.ts";
import { Selection } from "./select_set.ts";

/**
 * What `select` can wait for together with others: a reader, or a port.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { type Selectable, selectAsync } from "@millrace/millrace/select";
 *
 * const ports = [Port.create<string>(), Port.create<string>()];
 * const names = new Map<Selectable, string>([[ports[0]!, "left"], [ports[1]!, "right"]]);
 * Port.attach<string>(ports[1]!.memory).write("hello"); // usually in another thread
 * const ready = await selectAsync([...names.keys()]);
 * console.log(names.get(ready!)); // "right"
 * for (const port of ports) port.close();
 * ```
 */
export type Selectable = Reader<unknown> | PipeEnd;

/**
 * Blocks until one of the ports can be read, and returns that port; `undefined` at the timeout. A
 * `tryRead` of the port then returns a message, finds that the stream has ended, or throws.
 *
 * If several ports can be read, returns the one that was chosen longest ago, so that none starves.
 * A port that has ended, was closed, or whose peer failed can always be "read": leave it out of the
 * next call.
 *
 * All of them must be ports of one hub, which share one bell, because a thread cannot sleep on
 * several bells. To find out whether a message of several frames is complete, the call collects it.
 * A frame that `peek` has lent must be given back before.
 *
 * @throws {TypeError} if there are no ports, if they belong to several endpoints and `timeout` is
 * not 0, or if a frame of one is lent.
 * @throws {ForbiddenError} on a thread that must not block, after a few looks.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { Hub } from "@millrace/millrace/hub";
 * import { select } from "@millrace/millrace/select";
 *
 * using hub = Hub.create<string>(2);
 * using client = Port.attach<string>(hub.memory, { endpoint: 2 }); // usually in a worker
 * client.write("hello");
 * const port = select(hub.ports, { timeout: 1000 });
 * console.log(port === hub.ports[1], port?.tryRead()); // true "hello"
 * ```
 */
export function select<P extends Selectable>(
  ports: readonly P[],
  options: WaitOptions = {},
): P | undefined {
  return ports[new Selection(ports).select(options)];
}

/**
 * `select` without blocking, over any ports and readers of this thread, those over streams
 * included.
 *
 * @throws {TypeError} if there are no ports, or if a frame of one is lent.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { selectAsync } from "@millrace/millrace/select";
 *
 * const ports = [Port.create<number>(), Port.create<number>()];
 * Port.attach<number>(ports[1]!.memory).write(7); // usually in a worker
 * const port = await selectAsync(ports, { timeout: 1000 });
 * console.log(port?.tryRead()); // 7
 * for (const each of ports) each.close();
 * ```
 */
// deno-lint-ignore no-explicit-any -- What it reads makes no difference.
export async function selectAsync<P extends Selectable | StreamPort<any, any>>(
  ports: readonly P[],
  options: WaitOptions = {},
): Promise<P | undefined> {
  // A copy: the caller may change the array meanwhile.
  const copy = [...ports];
  return copy[await new Selection(copy as Selectable[]).selectAsync(options)];
}
