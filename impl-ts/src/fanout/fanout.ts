/**
 * Fanouts: every reader gets each message that one thread writes. In mode `hold` the slowest reader
 * holds the writer back. In mode `lose` the writer never waits, and a slow reader is told how many
 * messages it has lost. See `spec/fanout.md`.
 *
 * @example
 * ```ts
 * import { FanoutReader, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create<string>({ readers: 2 });
 * // Usually in two workers, to which `writer.handoff(0)` and `writer.handoff(1)` were posted:
 * using first = FanoutReader.from<string>(writer.handoff(0));
 * using second = FanoutReader.from<string>(writer.handoff(1));
 * writer.write("to all");
 * console.log(first.read(), second.read()); // to all to all
 * ```
 *
 * @module
 */

export { fanoutChannel, type FanoutHandoff, type FanoutMode } from "./channel.ts";
export type { FanoutPlan } from "./channel.ts";
export { type FanoutCreateOptions, FanoutWriter } from "./writer.ts";
export type { FanoutWriterOptions } from "./writer.ts";
export { FanoutReader, type FanoutReaderOptions } from "./reader.ts";
export { LostError } from "./inlet.ts";
