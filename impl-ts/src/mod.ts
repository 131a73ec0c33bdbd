/**
 * Millrace moves messages between threads, runtimes and processes through shared memory.
 *
 * @example
 * ```ts
 * import { Port } from "@millrace/millrace";
 *
 * using here = Port.create();
 * using there = Port.attach(here.memory); // usually in another thread
 * here.write({ hello: "there" });
 * console.log(there.read()); // { hello: "there" }
 * ```
 *
 * @module
 */

export {
  ClosedError,
  CorruptError,
  ForbiddenError,
  MessageError,
  MillraceError,
  PeerClosedError,
  PeerFailedError,
  SegmentError,
  TimeoutError,
} from "./error.ts";
export type { ReasonCode } from "./error.ts";
export type { Channel, ChannelGeometry, Geometry } from "./segment_geometry.ts";
export { segmentSize } from "./segment_geometry.ts";
export type { AttachAsyncOptions, AttachOptions, Memory, Region } from "./segment.ts";
export { Segment } from "./segment.ts";
export type { Mechanism } from "./wait.ts";
export { agentMechanism, pollingMechanism } from "./wait.ts";
export type { EndpointOptions, Stats } from "./wait_endpoint.ts";
export { closeEndpoint, failEndpoint } from "./wait_endpoint.ts";
export type { CodecName } from "./codec.ts";
export type { Lent, Place } from "./pipe_lend.ts";
export type { Message, ReaderOptions, WaitOptions, WriterOptions } from "./pipe.ts";
export type { ClaimOptions, MessageInit } from "./pipe_writer.ts";
export { Writer } from "./pipe_writer.ts";
export { Reader } from "./pipe_reader.ts";
export { MailboxReader, MailboxWriter } from "./mailbox.ts";
export type { PortCreateOptions, PortOptions, Side } from "./port.ts";
export { Port, portGeometry, portMemory } from "./port.ts";
