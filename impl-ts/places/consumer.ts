/**
 * A program for Node that uses the package as a stranger would: it must compile against the
 * declarations alone. Nobody runs it.
 *
 * @module
 */
import { sha256 } from "millrace/digest";
import { type FanoutCreateOptions, FanoutWriter } from "millrace/fanout";
import { type Memory, MillraceError, Port, portGeometry, type ReasonCode } from "millrace";
import type { PortAttachOptions, PortCreateOptions, PortOptions, WriterOptions } from "millrace";
import { Segment, Writer } from "millrace";
import { SegmentFile, SystemError } from "millrace/host";
import { Hub, type HubCreateOptions } from "millrace/hub";
import { MailboxReader } from "millrace/mailbox";
import { SABMessagePort, type SABMessagePortInit } from "millrace/sab-message-port";
import { selectAsync } from "millrace/select";
import { type ByteStreams, openStream, type OpenStreamOptions } from "millrace/stream";
import type { StreamPort } from "millrace/stream";
import { supervise, type WorkerLike } from "millrace/supervise";

/** What a worker is asked. */
interface Question {
  n: number;
}

/** Both ways are typed, and nothing yet is `undefined`. */
export async function ask(memory: Memory, n: number): Promise<string> {
  await Segment.attachAsync(memory);
  using port: Port<string, Question> = Port.attach<string, Question>(memory);
  port.write({ n }, { timeout: 1000 });
  const answer: string | undefined = port.read() ?? await port.readAsync({ timeout: 1000 });
  return answer ?? "none";
}

/** Errors have a code that the compiler knows. */
export function codeOf(error: unknown): ReasonCode | undefined {
  return error instanceof MillraceError ? error.code : undefined;
}

/** The drop-in layer is another entry of the same package, with the same kind of errors. */
export async function relay(init: SABMessagePortInit, note: string): Promise<void> {
  const other: SABMessagePort = SABMessagePort.from(init);
  await other.postMessage({ note });
  other.close();
}

/** So is what processes have: its ports are the same. */
export function meet(path: string): string | undefined {
  try {
    using file = SegmentFile.create(path, portGeometry(), { endpoint: 0, timeout: 100 });
    using port: Port<string, Question> = file.port<string, Question>();
    return port.read({ timeout: 1000 });
  } catch (error) {
    if (error instanceof SystemError) return error.code;
    throw error;
  }
}

/** A small entry takes the types of the package itself, and gives them back. */
export async function gather(worker: WorkerLike, streams: ByteStreams): Promise<string[]> {
  using hub = Hub.create<string>(1);
  using supervision = supervise(worker, hub.ports[0]!);
  const far: StreamPort<string> = await openStream<string>(streams, { timeout: 100 });
  const near: StreamPort<string> | undefined = await selectAsync([far, ...hub.ports]);
  using mailbox = MailboxReader.attach<string>(new SharedArrayBuffer(64));
  const texts = [near?.tryRead(), mailbox.tryRead(), (await supervision.failed).signal];
  return texts.filter((text): text is string => text !== undefined);
}

/** Options that are kept in a constant make what the same options in place make. */
export async function reuse(memory: Memory, streams: ByteStreams): Promise<void> {
  const options: PortOptions = { codec: "json" };
  const creating: PortCreateOptions = options;
  const attaching: PortAttachOptions = options;
  Port.create(options).write({ n: 1 });
  Port.create(creating).write({ n: 1 });
  Port.attach(memory, attaching).write({ n: 1 });
  const texts: PortOptions<string> = { codec: "text" };
  const port: Port<string> = Port.create(texts);
  port.write("1");
  const hubs: HubCreateOptions = { codec: "json" };
  Hub.create(1, hubs).ports[0]!.write({ n: 1 });
  const writing: WriterOptions = { codec: "json" };
  Writer.attach(Segment.attach(memory), writing).write({ n: 1 });
  const fanouts: FanoutCreateOptions = { readers: 2 };
  FanoutWriter.create(fanouts).write({ n: 1 });
  const opening: OpenStreamOptions = { timeout: 100 };
  (await openStream(streams, opening)).postMessage({ n: 1 });
}

/** A digest has memory of its own, so that whatever takes unshared bytes takes it. */
export function digestOf(bytes: Uint8Array): ArrayBufferView & { buffer: ArrayBuffer } {
  return sha256(bytes);
}
