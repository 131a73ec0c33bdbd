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
export type { ErrorDetails, ErrorKind, ReasonCode, SharedReason } from "./error.ts";
export type { Channel, ChannelGeometry, Geometry } from "./memory/plan.ts";
export { segmentSize } from "./memory/plan.ts";
export type { AttachAsyncOptions, AttachOptions, Memory, Region } from "./memory/segment.ts";
export { Segment } from "./memory/segment.ts";
export type { Mechanism } from "./wait/mechanism.ts";
export { agentMechanism, pollingMechanism } from "./wait/mechanism.ts";
export type { EndpointOptions, Stats } from "./wait/endpoint.ts";
export { closeEndpoint, failEndpoint, generationOf } from "./wait/state.ts";
export type { Codec, CodecName } from "./codec/codec.ts";
export type {
  Message,
  PipeEnd,
  ReaderOptions,
  ReadingEnd,
  TryReadingEnd,
  TryWritingEnd,
  WaitOptions,
  WriterOptions,
  WritingEnd,
} from "./pipe/options.ts";
export { Reader, statsOf, Writer } from "./pipe/ends.ts";
export type {
  PortCloseEvent,
  PortEventMap,
  PortListener,
  PortListenerOptions,
  PortMessageEvent,
} from "./port/events.ts";
export type { HandoffSource, ReceivePortOptions } from "./port/receive.ts";
export { receivePort } from "./port/receive.ts";
export type { DeliveryOptions } from "./port/delivery.ts";
export type {
  PortAttachOptions,
  PortCreateOptions,
  PortHandoff,
  PortOptions,
  PostingOptions,
  PostOptions,
  Side,
} from "./port/options.ts";
export { isPortHandoff, portGeometry, portMemory } from "./port/options.ts";
export { Port } from "./port/port.ts";
