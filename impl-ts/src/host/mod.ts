/**
 * Segments in files, through which processes of Deno and Node exchange messages with each other and
 * with native processes, on Linux on x86-64 or aarch64. Deno needs `--allow-ffi`, which no other
 * part of Millrace needs; Node needs an addon, whose package is installed together with Millrace.
 *
 * @example
 * ```ts
 * import { portGeometry } from "@millrace/millrace";
 * import { SegmentFile } from "@millrace/millrace/host"; // needs --allow-ffi
 *
 * const path = `/dev/shm/numbers-${crypto.randomUUID()}`;
 * using file = SegmentFile.create(path, portGeometry(), { endpoint: 0 });
 * using port = file.port<number>();
 * port.tryWrite(1); // whoever opens the file as endpoint 1 reads it
 * Deno.removeSync(path);
 * ```
 *
 * @module
 */

export { SegmentFile } from "./segment_file.ts";
export type { SegmentFileOptions } from "./segment_file.ts";
export { SystemError } from "./system_error.ts";
