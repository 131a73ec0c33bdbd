/**
 * Live runs of the small port, which only blocks.
 *
 * @module
 */

import { fill, Workload } from "../../kit/workload.ts";
import { Transcript } from "../../kit/crc32.ts";
import type { Ran, Task } from "../../kit/protocol.ts";
import { pause, PortError } from "./small_memory.ts";
import type { Reader } from "./small_reader.ts";
import type { Writer } from "./small_writer.ts";

/** Writes or reads the messages of a seed. */
export function runTask(
  { reader, writer }: { reader?: Reader; writer?: Writer },
  task: Task,
  timeoutMs: number,
): Ran {
  const transcript = new Transcript(task.record);
  const { endpoint } = (reader ?? writer)!;
  const tell = (end: string, reason?: string | number): Ran => {
    const { count, size, crc32, record } = transcript;
    const ran: Ran = { count, size, crc32, end };
    if (reason !== undefined) ran.reason = reason;
    if (record !== undefined) ran.record = record;
    return ran;
  };
  try {
    const end = writer === undefined
      ? readAll(reader!, task, timeoutMs, transcript)
      : writeAll(writer, task, timeoutMs, transcript);
    if (task.then === "close") endpoint.close();
    else if (task.then === "end") writer?.end();
    return tell(end);
  } catch (error) {
    if (!(error instanceof PortError)) throw error;
    return tell(error.code, error.reason);
  }
}

function writeAll(writer: Writer, task: Task, timeoutMs: number, transcript: Transcript): string {
  const workload = new Workload(task.seed, task.capacity);
  const scratch = new Uint8Array(workload.sizeMax);
  for (let index = 0; index < task.count!; index++) {
    rest(task, index);
    const message = workload.next();
    const payload = fill(message, scratch);
    writer.write({ kind: 1, codec: 0, tag: message.tag, payload }, timeoutMs);
    transcript.add(message.tag, payload);
  }
  return "done";
}

function readAll(reader: Reader, task: Task, timeoutMs: number, transcript: Transcript): string {
  for (let index = 0; index < (task.count ?? Infinity); index++) {
    rest(task, index);
    const message = reader.read(timeoutMs);
    if (message === "ended") return "ended";
    if (message === undefined) throw new PortError("wait.timeout");
    transcript.add(message.tag, message.payload);
  }
  return "done";
}

function rest({ delay_us, delay_every }: Task, index: number): void {
  if (delay_us !== undefined && index % delay_every! === 0) pause(delay_us / 1000);
}
