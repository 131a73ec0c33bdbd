/**
 * The small port as a testee of properties and fanouts.
 *
 * @module
 */

import { fromHex } from "../../reference/bytes.ts";
import { Transcript } from "../../kit/crc32.ts";
import type { Gotten, Opening, Outgoing, Ran, Task } from "../../kit/protocol.ts";
import { fill, Workload } from "../../kit/workload.ts";
import { packHex, type Session } from "../server.ts";
import type { Endpoint } from "./small_endpoint.ts";
import { FanoutReader } from "./small_fanout_reader.ts";
import { FanoutWriter } from "./small_fanout_writer.ts";
import { pause, PortError } from "./small_memory.ts";
import { type Got, PropertyReader, PropertyWriter } from "./small_property.ts";
import type { Value } from "./small_codec.ts";
import type { Taken } from "./small_reader.ts";
import type { Segment } from "./small_segment.ts";

type Told = (taken: Value | Taken) => ReturnType<NonNullable<Session["read"]>>;

/** Opens one end of a property. */
export function openProperty(segment: Segment, opening: Opening): Session {
  const { role, channel, property = "", values = false } = opening;
  const which = channel ?? property;
  if (role === "property_writer") {
    const writer = new PropertyWriter(segment, which, opening.endpoint ?? 0);
    const write = ({ codec, hex }: Pick<Outgoing, "codec" | "hex">) =>
      writer.set({ codec, payload: fromHex(hex) });
    return {
      write: (message) => (write(message), true),
      clear: () => writer.set(undefined),
      run: (task) =>
        runWriter(
          task,
          writer,
          (message) =>
            message.payload.length > 0
              ? writer.set({ codec: 0, payload: message.payload })
              : writer.set(undefined),
        ),
      close: () => writer.close(),
    };
  }
  const reader = new PropertyReader(segment, which, opening.endpoint ?? 1, values);
  return {
    get: () => gottenOf(reader.get()),
    changed: (timeoutMs) => reader.changed(timeoutMs),
    run: (task, timeoutMs) =>
      told(task, (transcript) => getAll(reader, task, timeoutMs, transcript)),
    close: () => reader.endpoint.close(),
  };
}

/** Opens one end of a fanout. */
export function openFanout(segment: Segment, opening: Opening, tell: Told): Session {
  const { role, channel, limit = 4096, oldest = false } = opening;
  if (role === "fanout_writer") {
    const writer = new FanoutWriter(segment, channel, opening.endpoint ?? 0);
    return {
      write: ({ kind, codec, tag, hex }, timeoutMs) =>
        writer.write({ kind, codec, tag, payload: fromHex(hex) }, timeoutMs),
      end: () => writer.end(),
      run: (task, timeoutMs) =>
        runWriter(task, writer, (message) => {
          writer.write({ kind: 1, codec: 0, ...message }, timeoutMs);
        }),
      close: () => writer.close(),
    };
  }
  const reader = new FanoutReader(segment, channel, opening.endpoint ?? 1, limit, oldest);
  return {
    read: (timeoutMs) => tell(reader.read(timeoutMs)),
    leave: () => reader.leave(),
    join: () => reader.join(),
    run: (task, timeoutMs) =>
      told(task, (transcript) => readAll(reader, task, timeoutMs, transcript)),
    close: () => reader.close(),
  };
}

function gottenOf({ version, value }: Got): Gotten {
  if (value === undefined) return { version };
  const { payload, ...rest } = value;
  return { version, item: payload === undefined ? rest : { ...rest, hex: packHex(payload) } };
}

/** Runs something that has a transcript; what ends it is its end. */
function told(task: Task, run: (transcript: Transcript) => string): Ran {
  const transcript = new Transcript(task.record);
  const tell = (end: string, reason?: string | number): Ran => {
    const { count, size, crc32, record, lost } = transcript;
    const ran: Ran = { count, size, crc32, end };
    if (reason !== undefined) ran.reason = reason;
    if (record !== undefined) ran.record = record;
    if (task.lossy) ran.lost = lost;
    return ran;
  };
  try {
    return tell(run(transcript));
  } catch (error) {
    if (!(error instanceof PortError)) throw error;
    return tell(error.code, error.reason);
  }
}

function runWriter(
  task: Task,
  writer: { end?(): void; close(): void },
  write: (message: { tag: number; payload: Uint8Array }) => void,
): Ran {
  return told(task, (transcript) => {
    const workload = new Workload(task.seed, task.capacity);
    const scratch = new Uint8Array(workload.sizeMax);
    for (let index = 0; index < task.count!; index++) {
      rest(task, index);
      const message = workload.next();
      const payload = fill(message, scratch);
      write({ tag: message.tag, payload });
      transcript.add(message.tag, payload);
    }
    if (task.then === "close") writer.close();
    else if (task.then === "end") writer.end?.();
    return "done";
  });
}

/** Gets each value that is another one than the last, up to the version of the count. */
function getAll(
  reader: PropertyReader,
  task: Task,
  timeoutMs: number,
  transcript: Transcript,
): string {
  let last = "";
  for (;;) {
    const got = tryGet(reader);
    if (got !== undefined && got.version !== 0) {
      const { version, value } = got;
      const now = `${version} ${value === undefined ? "" : packHex(value.payload!)}`;
      if (now !== last) {
        if (value === undefined) transcript.addNone(version);
        else transcript.add(version, value.payload!);
      }
      last = now;
      if (version === task.count) return "ended";
    }
    if (task.wait === "block") reader.changed(timeoutMs);
  }
}

function tryGet(reader: PropertyReader): Got | undefined {
  try {
    return reader.get();
  } catch (error) {
    if (error instanceof PortError && error.code === "property.busy") return undefined;
    throw error;
  }
}

function readAll(
  reader: FanoutReader & { endpoint: Endpoint },
  task: Task,
  timeoutMs: number,
  transcript: Transcript,
): string {
  for (let index = 0; index < (task.count ?? Infinity); index++) {
    rest(task, index);
    try {
      const message = reader.read(timeoutMs);
      if (message === "ended") return "ended";
      if (message === undefined) throw new PortError("wait.timeout");
      transcript.add(message.tag, message.payload);
    } catch (error) {
      if (!(error instanceof PortError && error.count !== undefined && task.lossy)) throw error;
      transcript.addNone(error.count);
      transcript.lost += error.count;
    }
  }
  if (task.then === "close") reader.close();
  return "done";
}

function rest({ delay_us, delay_every }: Task, index: number): void {
  if (delay_us !== undefined && index % delay_every! === 0) pause(delay_us / 1000);
}
