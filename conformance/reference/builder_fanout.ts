/** What the cases of fanouts have in common. @module */

import { ATTACHED, endFrame, utf8, VACANT, whole } from "./builder.ts";
import { fromHex, little, type Run, toHex, toImage, word } from "./bytes.ts";
import type { Expected, Operation, Setting } from "./case.ts";
import { buildExtension, buildFrame, buildSegment, type ChannelPlan, EXTENDED } from "./encode.ts";
import { type FramePlan, NOBODY, put, type RecordPlan, type Segment } from "./encode.ts";
import { fieldOf, limitOf, sizeOf, valueOf } from "./layout.ts";

/** A fanout of three endpoints: by default the first writes, and the others have a record each. */
export interface FanoutPlan {
  capacity?: number;
  /** Where it begins, and whether its mode is `lose`. */
  start?: number;
  lose?: boolean;
  endpoints?: number;
  readers?: number;
  states?: number[];
  records?: RecordPlan[];
  /** Frames that are there, from a position on, and the number of the first. */
  frames?: FramePlan[];
  from?: number;
  floor?: number;
  era?: number;
  ended?: number;
  /** The `head` of each record; 0 where it is left out. */
  heads?: number[];
  writerWants?: number[];
  readersWant?: number;
  channel?: Partial<ChannelPlan>;
}

/** A fanout as bytes. */
export interface Fanout extends Segment {
  control: number;
  data: number;
  capacity: number;
  /** Where each frame begins. */
  at: number[];
}

const CONTROL = "fanout_control";

/** Builds a fanout. */
export function fanout(plan: FanoutPlan = {}): Fanout {
  const { capacity = 256, start = 0, lose = false, endpoints = 3, records } = plan;
  const { readers = endpoints - 1, states = [ATTACHED, VACANT, VACANT], frames = [] } = plan;
  const mode = lose ? limitOf("fanout_lose") : 0;
  const channel = { writer: 0, reader: NOBODY, capacity, readers, start: start + mode };
  const segment = buildSegment({
    endpoints,
    channels: [{ ...channel, ...plan.channel }],
    states,
    ...(records && { records }),
  });
  const { control, data } = segment.channels[0]!;
  const { bytes } = segment;
  let position = plan.from ?? start;
  const at = frames.map((frame) => {
    const begin = data + position % capacity;
    for (const byte of buildFrame(frame)) {
      bytes[data + position % capacity] = byte;
      position = (position + 1) % 2 ** 32;
    }
    return begin;
  });
  put(bytes, control, CONTROL, "tail", position);
  if (plan.floor !== undefined) put(bytes, control, CONTROL, "floor", plan.floor);
  if (plan.era !== undefined) put(bytes, control, CONTROL, "era", plan.era);
  if (plan.ended !== undefined) put(bytes, control, CONTROL, "ended", plan.ended);
  const want = little(plan.readersWant ?? 0, fieldOf(CONTROL, "readers_want").size);
  put(bytes, control, CONTROL, "readers_want", want);
  (plan.heads ?? []).forEach((head, index) =>
    put(bytes, recordOf({ control }, index), "fanout_reader", "head", head)
  );
  (plan.writerWants ?? []).forEach((wants, index) =>
    put(bytes, recordOf({ control }, index), "fanout_reader", "writer_wants", wants)
  );
  return { ...segment, control, data, capacity, at };
}

/** Where the record of a reader begins. */
export function recordOf({ control }: { control: number }, index: number): number {
  return control + sizeOf(CONTROL) + index * sizeOf("fanout_reader");
}

/** A position of a reader that has joined. */
export function joined(position: number): number {
  return position + limitOf("fanout_joined");
}

export const JOINING: number = limitOf("fanout_joining");

/** A message with a number, as in mode `lose`. */
export function numbered(
  content: string | Uint8Array,
  number: number,
  more: Partial<FramePlan> = {},
): FramePlan {
  const frame = whole(content, more);
  const extension = buildExtension(valueOf("extension_kind", "number"), little(number, 8));
  return { ...frame, flags: (frame.flags ?? 0) + EXTENDED, extension };
}

/** Texts with numbers from 0 on. */
export function texts(...contents: string[]): FramePlan[] {
  return contents.map((content, index) => numbered(utf8(content), index, { codec: 1 }));
}

/** The setting in which endpoint 1 reads a fanout. */
export function reads({ bytes }: Segment, more: Partial<Setting> = {}): Setting {
  const image = toImage(bytes);
  const operations: Operation[] = [{ read: true }];
  return { kind: "read", image, role: "fanout_reader", channel: 0, operations, ...more };
}

/** The setting in which endpoint 0 writes to one. */
export function writes(
  { bytes }: Segment,
  operations: Operation[],
  more: Partial<Setting> = {},
): Setting {
  const image = toImage(bytes);
  return { kind: "write", image, role: "fanout_writer", channel: 0, operations, ...more };
}

/** The writer places frames from a position on, and publishes; or the kit does, in its place. */
export function publishes(plan: Fanout, from: number, ...frames: FramePlan[]): Operation {
  const runs: Run[] = [];
  let tail = from;
  for (const frame of frames) {
    const bytes = buildFrame(frame);
    runs.push({ offset: plan.data + tail % plan.capacity, hex: toHex(bytes) });
    tail = (tail + bytes.length) % 2 ** 32;
  }
  return { set: [...runs, wordRun(plan, "tail", tail)] };
}

/** The same, and then `end`. */
export function ends(plan: Fanout, from: number, ...frames: FramePlan[]): Operation {
  const { set } = publishes(plan, from, ...frames, endFrame()) as { set: Run[] };
  const tail = new DataView(fromHex(set.at(-1)!.hex).buffer).getUint32(0, true);
  return { set: [...set.slice(0, -1), wordRun(plan, "ended", tail + 1), set.at(-1)!] };
}

/** Stores words of the control area. */
export function stores(plan: Fanout, words: Record<string, number>): Operation {
  return { set: Object.entries(words).map(([name, value]) => wordRun(plan, name, value)) };
}

/** Stores the `head` of a record. */
export function storesHead(plan: Fanout, index: number, value: number): Operation {
  return { set: [{ offset: recordOf(plan, index), hex: word(value) }] };
}

function wordRun({ control }: Fanout, name: string, value: number): Run {
  return { offset: control + fieldOf(CONTROL, name).offset, hex: word(value) };
}

/** A word of the control area must be this; of `readers_want`, its first. */
export function controlIs(plan: Fanout, name: string, value: number): Expected {
  return { ...wordRun(plan, name, value), about: name };
}

/** A word of a record must be this. */
export function recordIs(plan: Fanout, index: number, name: string, value: number): Expected {
  const { offset } = fieldOf("fanout_reader", name);
  return { offset: recordOf(plan, index) + offset, hex: word(value), about: `${name} of ${index}` };
}
