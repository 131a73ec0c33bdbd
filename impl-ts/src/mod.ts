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
export type { Channel, ChannelGeometry, Geometry } from "./segment_geometry.ts";
export { segmentSize } from "./segment_geometry.ts";
export type { AttachAsyncOptions, AttachOptions, Memory, Region } from "./segment.ts";
export { Segment } from "./segment.ts";
export type { Mechanism } from "./wait.ts";
export { agentMechanism, pollingMechanism } from "./wait.ts";
export type { EndpointOptions, Stats } from "./wait_endpoint.ts";
export { closeEndpoint, failEndpoint, generationOf } from "./wait_state.ts";
export type { Codec, CodecName } from "./codec.ts";
export type { Lent, Place } from "./pipe_lend.ts";
export type { Message, ReaderOptions, WaitOptions, WriterOptions } from "./pipe.ts";
export type { ClaimOptions, MessageInit } from "./pipe_writer.ts";
export { Writer } from "./pipe_writer.ts";
export { Reader } from "./pipe_reader.ts";
export type {
  PortEventMap,
  PortListener,
  PortListenerOptions,
  PortMessageEvent,
} from "./port_events.ts";
export { PortCloseEvent, PortEventTarget } from "./port_events.ts";
export type { HandoffSource, ReceivePortOptions } from "./port_receive.ts";
export { receivePort } from "./port_receive.ts";
export type { DeliveryOptions } from "./port_delivery.ts";
export type { PostingOptions, PostOptions } from "./port_outbox.ts";
export type { PortHandoff } from "./port_handoff.ts";
export type { PortAttachOptions, PortCreateOptions, PortOptions, Side } from "./port.ts";
export { Port, portGeometry, portMemory } from "./port.ts";
