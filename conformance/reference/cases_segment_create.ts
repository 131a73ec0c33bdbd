/** What a creator writes: cases of `spec/segment.md`. @module */

import { Cases, field, imageIs, member } from "./builder.ts";
import { fromChapter, mustHold } from "./chapter.ts";
import { toImage } from "./bytes.ts";
import type { Setting } from "./case.ts";
import { buildSegment, descriptorAt, type SegmentPlan } from "./encode.ts";

const HEADER = "segment_header";
const PIPE: SegmentPlan = {
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity: 256, label: 7 }],
};
/** The example of the chapter. */
const EXAMPLE = fromChapter("segment", [
  "0000  4d 49 4c 4c 52 41 43 45  02 00 00 00 01 00 00 00",
  "0010  00 05 00 00 00 00 00 00  00 00 00 00 02 00 00 00",
  "0020  01 00 00 00",
  "0180  01 00 00 00 00 00 00 00  01 00 00 00 00 02 00 00",
  "0190  00 02 00 00 00 04 00 00  00 01 00 00 07 00 00 00",
]);

/** Adds them to the cases of the segment. */
export function addCreate(cases: Cases): void {
  addFormat(cases);
  addWrite(cases);
  addRefused(cases);
  addSameGeometry(cases);
}

function creating(memory: Uint8Array, plan: SegmentPlan, more: Partial<Setting> = {}): Setting {
  const geometry = plan as NonNullable<Setting["geometry"]>;
  return { kind: "create", image: toImage(memory), role: "segment", geometry, ...more };
}

function garbage(size: number): Uint8Array {
  return new Uint8Array(size).fill(0xee).fill(0, 8, 12);
}

/** Everything before the first byte area. */
function formatted(plan: SegmentPlan, to: number) {
  const about = "all bytes that a creator writes";
  return imageIs(buildSegment(plan).bytes, 0, to, about);
}

function addFormat(cases: Cases): void {
  const { bytes } = buildSegment(PIPE);
  mustHold(bytes, 0, EXAMPLE);
  const all = "segment.claim segment.publish segment.place segment.size_limit segment.write " +
    "segment.claim_checked segment.same_geometry ring.start ring.capacity";
  const from = cases.valid(creating(new Uint8Array(1280), PIPE), {
    name: "create",
    about: "Blank memory becomes the example of the chapter.",
    clauses: all,
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
  const other = { ...PIPE, channels: [{ ...PIPE.channels[0]!, label: 0x01020304, start: 0x80 }] };
  cases.invalid(from, member("geometry", other), {
    name: "create_start",
    about: "With another label and start: both cursors begin there.",
    clauses: "segment.write segment.place segment.publish ring.start",
    result: "ok",
    bytes: formatted(other, 1024),
  });
  cases.valid(creating(garbage(1280), PIPE), {
    name: "create_on_garbage",
    about: "Blank means that `ready` is 0, whatever else stands there.",
    clauses: "segment.claim segment.publish segment.write ring.start",
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
  cases.valid(creating(new Uint8Array(1280).fill(0xee), PIPE, { sole_owner: true }), {
    name: "format_again",
    about: "The only owner of memory formats it, whatever it holds.",
    clauses: "segment.claim segment.write",
    result: "ok",
    bytes: formatted(PIPE, 1024),
  });
}

function addWrite(cases: Cases): void {
  const small: SegmentPlan = { endpoints: 1, channels: [] };
  cases.valid(creating(garbage(384), small), {
    name: "create_smallest",
    about: "One endpoint and no channel, in memory that held something else.",
    clauses: "segment.write segment.place",
    result: "ok",
    bytes: formatted(small, 256),
  });
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const three: SegmentPlan = {
    endpoints: 2,
    channels: [ring, { ...ring, start: 0xfffffff0 }, { ...ring, writer: 1, reader: 0 }],
  };
  const { bytes, channels } = buildSegment(three);
  const controls = channels.flatMap(({ control }) =>
    imageIs(bytes, control, control + 512, "control words, and what is between them")
  );
  cases.valid(creating(garbage(bytes.length), three), {
    name: "create_gap",
    about: "Between the tables, which end at 576, and the first area at 640 stands 0.",
    clauses: "segment.write segment.place ring.start",
    result: "ok",
    bytes: [...imageIs(bytes, 0, 640, "header and tables"), ...controls],
  });
}

function addRefused(cases: Cases): void {
  const refused = { result: "segment.size", unchanged: true } as const;
  const from = "segment/create";
  const clauses = "segment.size_limit segment.claim_checked";
  cases.invalid(from, member("image.size", 1152), {
    name: "create_too_small",
    about: "The memory is smaller than the geometry takes; it stays blank.",
    clauses: `${clauses} segment.place`,
    ...refused,
  });
  const huge = { writer: 0, reader: 1, capacity: 2 ** 30 };
  cases.invalid(from, member("geometry.channels", [huge, huge, huge, huge]), {
    name: "create_too_large",
    about: "The geometry takes more than any segment may have; the memory stays blank.",
    clauses,
    ...refused,
  });
  cases.invalid(from, member("memory_offset", 64), {
    name: "create_misaligned",
    about: "The memory begins at an odd multiple of 64; it stays blank.",
    clauses: "segment.align segment.claim_checked",
    ...refused,
  });
  cases.invalid(from, field(0, HEADER, "ready", 1), {
    name: "create_while_formatting",
    about: "Another creator has claimed the memory, and has not finished.",
    clauses: "segment.claim segment.publish segment.await",
    result: "segment.unready",
    unchanged: true,
  });
}

function addSameGeometry(cases: Cases): void {
  const plan: SegmentPlan = {
    endpoints: 3,
    channels: [{ writer: 0, reader: 1, capacity: 256, label: 7, start: 16 }],
  };
  const memory = Uint8Array.of(...buildSegment(plan).bytes, ...new Uint8Array(1024));
  const from = cases.valid(creating(memory, plan), {
    name: "create_again",
    about: "The other side came first, with the same geometry.",
    clauses: "segment.same_geometry segment.claim",
    result: "ok",
    unchanged: true,
  });
  // Another one that has put the same areas elsewhere, with 128 bytes to spare.
  const apart = buildSegment({
    ...plan,
    channels: [{ ...plan.channels[0]!, data_offset: 1280 }],
    extra: 128,
  });
  const elsewhere = cases.valid(
    creating(Uint8Array.of(...apart.bytes, ...new Uint8Array(1024)), plan),
    {
      name: "create_again_elsewhere",
      about: "The other side came first, and has placed the same geometry otherwise.",
      clauses: "segment.same_geometry",
      result: "ok",
      unchanged: true,
    },
  );
  cases.invalid(elsewhere, field(descriptorAt(3, 0), "channel_descriptor", "control_size", 640), {
    name: "create_other_control",
    about: "Its ring has more control words than this version's.",
    clauses: "segment.same_geometry",
    result: "segment.geometry",
    unchanged: true,
  });
  const changes: [string, string, unknown][] = [
    ["endpoints", "endpoints", 2],
    ["writer", "channels.0.writer", 2],
    ["reader", "channels.0.reader", 2],
    ["capacity", "channels.0.capacity", 512],
    ["label", "channels.0.label", 8],
    ["start", "channels.0.start", 32],
  ];
  for (const [name, path, value] of changes) {
    cases.invalid(from, member(`geometry.${path}`, value), {
      name: `create_other_${name}`,
      about: `The other side came first, and its geometry differs: ${name}.`,
      clauses: "segment.same_geometry",
      result: "segment.geometry",
      unchanged: true,
    });
  }
}
