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
  OverflowError,
  PeerClosedError,
  PeerFailedError,
  SegmentError,
  TimeoutError,
} from "./error.ts";
export type { ReasonCode, SharedReason } from "./error.ts";
export type { Channel, ChannelGeometry, Geometry } from "./memory/segment_geometry.ts";
export { segmentSize } from "./memory/segment_geometry.ts";
export type { AttachAsyncOptions, AttachOptions, Memory, Region } from "./memory/segment.ts";
export { Segment } from "./memory/segment.ts";
export type { Mechanism } from "./wait/wait.ts";
export { agentMechanism, pollingMechanism } from "./wait/wait.ts";
export type { EndpointOptions, Stats } from "./wait/endpoint.ts";
export { closeEndpoint, failEndpoint, generationOf } from "./wait/state.ts";
export type { Codec, CodecName } from "./codec/codec.ts";
export type { Lent, Place } from "./pipe/lend.ts";
export type { Message, ReaderOptions, WaitOptions, WriterOptions } from "./pipe/pipe.ts";
export type { ClaimOptions, MessageInit } from "./pipe/writer.ts";
export { Writer } from "./pipe/writer.ts";
export { Reader } from "./pipe/reader.ts";
export type {
  PortEventMap,
  PortListener,
  PortListenerOptions,
  PortMessageEvent,
} from "./port/events.ts";
export { PortCloseEvent, PortEventTarget } from "./port/events.ts";
export type { HandoffSource, ReceivePortOptions } from "./port/receive.ts";
export { receivePort } from "./port/receive.ts";
export type { DeliveryOptions } from "./port/delivery.ts";
export type { PostingOptions, PostOptions } from "./port/outbox.ts";
export type { PortHandoff } from "./port/handoff.ts";
export type { PortAttachOptions, PortCreateOptions, PortOptions, Side } from "./port/port.ts";
export { Port, portGeometry, portMemory } from "./port/port.ts";
