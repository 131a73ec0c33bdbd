/**
 * A hostile writer: good frames in which one byte of a header is wrong, by seed. What must come of
 * it is what the inspector finds, which reads the bytes as the chapters say and shares nothing with
 * any port.
 *
 * @module
 */

import { inspect } from "../../inspect/mod.ts";
import { Random } from "../workload.ts";
import { ATTACHED, endFrame, extended, firstOf, pad, part } from "../../reference/builder.ts";
import { pattern, pipe, VACANT, whole } from "../../reference/builder.ts";
import { buildFrame, failed, type FramePlan, TOTAL_UNKNOWN } from "../../reference/encode.ts";
import { perform } from "../../static/driver.ts";
import { type Script, Stage } from "./stage.ts";

const CAPACITY = 1024;
const COUNT = 150;

/** Good frames up to the end of the area, a pad, and some behind it. */
const FRAMES: FramePlan[] = [
  whole(pattern(20)),
  firstOf(60, pattern(16), { tag: 3 }),
  part(pattern(24, 16), { tag: 3, flags: 0 }),
  { kind: 200, payload: pattern(8) },
  part(pattern(20, 40), { tag: 3 }),
  whole(pattern(0), { kind: 3, tag: 7 }),
  firstOf(500, pattern(32), { tag: 4 }),
  { kind: 1, flags: 6, tag: 4 },
  whole(pattern(112), { codec: 200 }),
  extended(whole(pattern(20))),
  extended(firstOf(TOTAL_UNKNOWN, pattern(5))),
  extended(part(pattern(5, 5))),
];

/** All but `time`, which has no wrong value. */
const HEADER = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/** What is reserved, and the lowest byte of `total`: a large one would only be above the limit. */
const PREAMBLE = [0, 8, 9, 12, 15];
/** The size of an extension; its kind may be any. */
const EXTENSION = [0, 1, 2, 3, 4];
const VALUES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 31, 64, 127, 128, 199, 255];

export const HOSTILE_SCRIPTS: Script[] = [{
  id: "scripted/hostile_frames",
  about: `Rings (${COUNT}) in which one byte of a header is wrong: the fault, and no other.`,
  clauses: [
    "frame.check",
    "frame.check_total",
    "frame.extension",
    "frame.skip",
    "frame.skip_extension",
    "ring.fault",
    "ring.fault_stop",
  ],
  role: "reader",
  mayDecline: ["calls", "bytes"],
  async play(arena) {
    for (let seed = 1; seed <= COUNT; seed++) {
      const { memory, fault, what } = spoil(seed);
      const more = { limit: 4096, calls: true };
      await Stage.with(arena, "reader", memory, more, async (stage) => {
        stage.step = `ring ${seed}, ${what}: `;
        const got = await perform({ read: true }, stage.session, stage.memory, undefined);
        const end = typeof got === "object" && "items" in got ? got.end ?? "" : "";
        const isFault = /^(frame|ring)\./.test(end);
        const isSame = fault === undefined ? !isFault : end === fault;
        const must = fault ?? "no fault";
        stage.demand(isSame, `[frame.check] read ended with ${end}, not ${must}`);
        if (fault === undefined) return;
        const state = await stage.record(0, "state");
        const mark = failed(fault);
        stage.demand(state === mark, `[ring.fault] the writer's state is ${state}, not ${mark}`);
      });
    }
  },
}];

/** A ring with one wrong byte, and the fault that it makes. */
function spoil(seed: number) {
  const random = new Random(seed * 2_654_435_761 >>> 0 || 1);
  for (let index = 0; index < 8; index++) random.next();
  // So that a pad is in the middle: behind some of the frames the area ends.
  const cut = random.next() % FRAMES.length;
  const before = FRAMES.slice(0, cut).reduce((sum, frame) => sum + buildFrame(frame).length, 0);
  const start = 2 ** 32 - before - 64;
  const frames = [...FRAMES.slice(0, cut), pad(64), ...FRAMES.slice(cut), endFrame()];
  const memory = pipe({ capacity: CAPACITY, start, states: [ATTACHED, VACANT], frames });
  const index = random.next() % frames.length;
  const { flags = 0, extension = [], payload = [] } = frames[index]!;
  // A size that is not known is not to become one, which would be above the limit.
  const preamble = payload[0] === 0xff ? PREAMBLE.slice(1) : PREAMBLE;
  const behind = (at: number, bytes: number[]) => bytes.map((byte) => at + byte);
  const places = [
    ...HEADER,
    ...(extension.length > 0 ? behind(16, EXTENSION) : []),
    ...((flags & 3) === 1 ? behind(16 + extension.length, preamble) : []),
  ];
  const byte = places[random.next() % places.length]!;
  const at = memory.at[index]! + byte;
  const value = VALUES[random.next() % VALUES.length]!;
  memory.bytes[at] = value;
  const code = inspect(memory.bytes, { as: "segment", limit: 1 }).fault?.code;
  const fault = code !== undefined && /^(frame|ring)\./.test(code) ? code : undefined;
  return { memory, fault, what: `frame ${index}, byte ${byte} is ${value}` };
}
