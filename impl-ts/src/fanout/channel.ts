/**
 * Channels that are fanouts: how to make one, find one, and hand one over to its readers. See
 * `spec/fanout.md`.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import type { Memory, Segment } from "../memory/segment.ts";
import { fanoutControlSize, fanoutReader, fanoutReaders, fanoutRecord } from "../memory/fanout.ts";
import {
  type Channel,
  type ChannelGeometry,
  peerFinders,
  requireCapacity,
  requireInteger,
} from "../memory/plan.ts";
import { MillraceError } from "../error.ts";

/**
 * What happens with a slow reader: it holds the writer back (`hold`), or it loses messages
 * (`lose`).
 *
 * @example
 * ```ts
 * import { type FanoutMode, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * const mode: FanoutMode = "lose";
 * using writer = FanoutWriter.create<number>({ readers: 1, mode, capacity: 256 });
 * for (let n = 0; n < 1000; n++) writer.write(n); // never waits
 * console.log(writer.mode); // lose
 * ```
 */
export type FanoutMode = "hold" | "lose";

/**
 * A fanout as its creator plans it.
 *
 * @example
 * ```ts
 * import { Segment } from "@millrace/millrace";
 * import { fanoutChannel, type FanoutPlan, FanoutReader } from "@millrace/millrace/fanout";
 *
 * const plan: FanoutPlan = { writer: 2, readers: 2, mode: "lose", capacity: 4096 };
 * const segment = Segment.allocate({ endpoints: 3, channels: [fanoutChannel(plan)] });
 * using reader = FanoutReader.attach(segment, { endpoint: 0 });
 * console.log(reader.mode); // lose
 * ```
 */
export interface FanoutPlan {
  /** The index of the endpoint that writes. Default 0. */
  readonly writer?: number | undefined;
  /** The number of readers, at most 255: the endpoints that follow the writer's. */
  readonly readers: number;
  /** Default `"hold"`. */
  readonly mode?: FanoutMode | undefined;
  /** Size of the ring in bytes, a power of two from 256 to 2^30. Default 65,536. */
  readonly capacity?: number | undefined;
  /** The application's own number for the channel, a `u32`. Default 0. */
  readonly label?: number | undefined;
  /** The first position of the ring, a `u32` and a multiple of 16; for tests. */
  readonly start?: number | undefined;
}

/** The default size of a ring in bytes. */
const DEFAULT_CAPACITY = 64 * 1024;

// Adds the peers that an endpoint has through sound fanouts, if they are new. [fanout.peers]
peerFinders.push(({ channels, endpointCount }, index, peers) => {
  for (const channel of channels) {
    const { kind, writer } = channel;
    // Most channels are rings, and every attach runs this.
    if (kind !== layout.CHANNEL_KIND_FANOUT) continue;
    const isWriter = index === writer;
    const readers = isWriter ? fanoutReaders(channel, endpointCount) : 0;
    for (let record = 0; record < readers; record++) {
      const peer = fanoutReader(writer, endpointCount, record);
      if (!peers.includes(peer)) peers.push(peer);
    }
    const isReader = !isWriter && fanoutRecord(channel, endpointCount, index) >= 0;
    if (isReader && !peers.includes(writer)) peers.push(writer);
  }
});

/**
 * Makes a fanout channel for a geometry, which may also contain rings. Its readers are the
 * endpoints that follow the writer's, in order; the last endpoint is followed by endpoint 0. The
 * geometry must have at least one endpoint more than the fanout has readers.
 *
 * @throws {RangeError} if a number is out of range.
 *
 * @example
 * ```ts
 * import { Segment } from "@millrace/millrace";
 * import { fanoutChannel, FanoutReader, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * // Three threads, each of which tells both others.
 * const channels = [0, 1, 2].map((writer) => fanoutChannel({ writer, readers: 2 }));
 * const segment = Segment.allocate({ endpoints: 3, channels });
 * using writer = FanoutWriter.attach<string>(segment, { endpoint: 2, channel: 2 });
 * using reader = FanoutReader.attach<string>(segment, { endpoint: 1, channel: 2 });
 * writer.write("to 0 and 1");
 * console.log(reader.read()); // to 0 and 1
 * ```
 */
export function fanoutChannel(plan: FanoutPlan): ChannelGeometry {
  const { writer = 0, readers, mode = "hold", label = 0, start = 0 } = plan;
  const { capacity = DEFAULT_CAPACITY } = plan;
  requireInteger("writer", writer, 0, layout.ENDPOINT_COUNT_MAX - 1);
  requireInteger("readers", readers, 1, layout.FANOUT_READERS_MAX);
  requireCapacity(capacity);
  requireInteger("label", label, 0, 2 ** 32 - 1);
  requireInteger("start", start, 0, 2 ** 32 - 1);
  if (start % layout.FRAME_ALIGN !== 0) {
    throw new RangeError(`start must be a multiple of 16: ${start}`);
  }
  if (mode !== "hold" && mode !== "lose") {
    throw new TypeError(`mode must be "hold" or "lose": ${mode}`);
  }
  const control = new Int32Array(fanoutControlSize(readers) >> 2);
  control[layout.FANOUT_TAIL_WORD] = control[layout.FANOUT_FLOOR_WORD] = start; // [fanout.start]
  control[layout.FANOUT_ERA_WORD] = Math.floor(start / layout.FANOUT_ERA_SIZE);
  // The descriptor holds the mode and all else that two creators could choose differently.
  const form = { kind: layout.CHANNEL_KIND_FANOUT, control, matches: () => true };
  const reader = layout.ENDPOINT_NONE;
  return { writer, reader, capacity, label, start: start + (mode === "lose" ? 1 : 0), form };
}

/** The mode of a fanout that has passed the checks. */
export function modeOf({ start }: Channel): FanoutMode {
  return (start & layout.FANOUT_LOSE) === 0 ? "hold" : "lose";
}

/**
 * Finds the fanout with this channel index, or else the first one, that the endpoint writes or has
 * a record in. [fanout.find]
 *
 * @throws {SegmentError} `segment.channel` if there is none. [fanout.find_none]
 */
export function findFanout(
  segment: Segment,
  index: number | undefined,
  endpoint: number,
  isWriter: boolean,
): Channel {
  const { channels, endpointCount } = segment;
  const fits = (channel: Channel) =>
    isWriter
      ? channel.writer === endpoint && fanoutReaders(channel, endpointCount) > 0
      : fanoutRecord(channel, endpointCount, endpoint) >= 0;
  const channel = index === undefined ? channels.find(fits) : channels[index];
  if (channel !== undefined && fits(channel)) return channel;
  const verb = isWriter ? "write" : "read";
  const text = `Cannot attach to segment: it has no fanout that endpoint ${endpoint} can ${verb}`;
  throw new MillraceError("segment.channel", text);
}

/**
 * A plain object from which another thread creates its reader, with `FanoutReader.from`.
 *
 * @example
 * ```ts
 * import { type FanoutHandoff, FanoutReader, FanoutWriter } from "@millrace/millrace/fanout";
 *
 * using writer = FanoutWriter.create({ readers: 2 });
 * const handoff: FanoutHandoff = writer.handoff(1); // for the second reader
 * using reader = FanoutReader.from(structuredClone(handoff)); // usually in another thread
 * console.log(handoff.endpoint, reader.endpoint); // 2 2
 * ```
 */
export interface FanoutHandoff {
  /** Tells a handoff of a fanout from other objects. */
  readonly millrace: "fanout";
  /** The memory of the fanout. */
  readonly memory: Memory;
  /** The index of the endpoint that is handed over. */
  readonly endpoint: number;
  /** The index of the channel. */
  readonly channel: number;
}

/** @throws {TypeError} unless the value is a handoff of a fanout. */
export function requireHandoff(value: unknown): asserts value is FanoutHandoff {
  const { millrace, memory, endpoint } = (value ?? {}) as Partial<FanoutHandoff>;
  if (millrace === "fanout" && memory !== undefined && Number.isInteger(endpoint)) return;
  throw new TypeError("Cannot read fanout: this is no handoff of one");
}
