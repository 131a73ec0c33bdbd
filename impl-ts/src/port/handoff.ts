/**
 * What is posted to another thread, from which it makes its end of a port. See `spec/port.md`.
 *
 * @module
 */

import { cannot } from "../error.ts";
import type { Segment } from "../memory/segment.ts";
import type { Memory } from "../memory/segment.ts";

/**
 * A plain object from which `Port.from` makes the other end of a port in another thread.
 *
 * @example
 * ```ts
 * import { Port, type PortHandoff } from "@millrace/millrace";
 *
 * const handoff: PortHandoff & { name: string } = Port.create().handoff({ name: "log" });
 * console.log(Port.isHandoff(structuredClone(handoff)), handoff.endpoint); // true 1
 * ```
 */
export interface PortHandoff {
  /** Marks the object as a handoff. */
  readonly millrace: "port";
  /** The memory of the port. */
  readonly memory: Memory;
  /** Index of the endpoint that is handed over. */
  readonly endpoint: number;
}

/** Makes a handoff, with the properties that the caller adds. */
export function makeHandoff<Extra extends object>(
  segment: Segment,
  endpoint: number,
  extra: Extra | undefined,
): PortHandoff & Extra {
  if (!segment.shared) cannot("hand port over: its memory is not shared");
  const handoff: PortHandoff = { millrace: "port", memory: segment.memory, endpoint };
  const taken = Object.keys(handoff).find((name) => Object.hasOwn(extra ?? {}, name));
  if (taken === undefined) return { ...extra as Extra, ...handoff };
  cannot(`hand port over: ${taken} is a property of every handoff`);
}

/** Whether a value is a handoff, as far as that can be seen without attaching. */
export function isHandoff(value: unknown): value is PortHandoff {
  if (typeof value !== "object" || value === null) return false;
  const { millrace, memory, endpoint } = value as Partial<PortHandoff>;
  return millrace === "port" && typeof memory === "object" && memory !== null &&
    Number.isInteger(endpoint);
}
