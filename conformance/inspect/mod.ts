/**
 * The inspector: what stands in a segment or a mailbox, as a person reads it. It decodes from
 * `spec/layout.json` and the chapters alone, checks what an endpoint checks and what only a strict
 * reader would, and shares no code with an implementation.
 *
 * ```ts
 * import { diff, format, inspect } from "./conformance/inspect/mod.ts";
 *
 * const memory = new Uint8Array(1280);
 * const found = inspect(memory);
 * console.log(found.fault?.code); // segment.unready
 * console.log(format(found)); // what ./millrace inspect prints
 * console.log(diff(memory, memory)); // nothing: the two are equal
 * ```
 *
 * @module
 */

export { annotate, type AnnotateOptions, formatLines, type Line } from "./diff.ts";
export { diff, type Difference, differences, type DifferenceSide } from "./diff.ts";
export { format, type FormatOptions } from "./format.ts";
export { inspect } from "./inspect.ts";
export type {
  Channel,
  Endpoint,
  Fault,
  Frame,
  Header,
  Inspection,
  InspectOptions,
  Mailbox,
  Note,
  Payload,
  Progress,
  Report,
  Ring,
  Track,
  Wants,
} from "./inspection.ts";
