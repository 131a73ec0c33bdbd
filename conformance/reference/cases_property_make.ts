/** What a creator of properties writes: cases of `spec/property.md`. @module */

import { Cases, imageIs, member } from "./builder.ts";
import { property, propertyOf } from "./builder_property.ts";
import { fromChapter, mustHold } from "./chapter.ts";
import { toImage } from "./bytes.ts";
import type { Setting } from "./case.ts";
import { buildSegment, type ChannelPlan, type SegmentPlan } from "./encode.ts";
import { valueOf } from "./layout.ts";

/** Adds them. */
export function addMaking(cases: Cases): void {
  addCreating(cases);
  addNames(cases);
}

const GAIN: SegmentPlan = { endpoints: 2, channels: [propertyOf({ name: "gain" })] };

function creating(memory: Uint8Array, plan: SegmentPlan): Setting {
  const geometry = plan as NonNullable<Setting["geometry"]>;
  return { kind: "create", image: toImage(memory), role: "segment", geometry };
}

/** All that a creator writes: up to the byte area of the last channel. */
function formatted(plan: SegmentPlan, to: number) {
  return imageIs(buildSegment(plan).bytes, 0, to, "all bytes that a creator writes");
}

function addCreating(cases: Cases): void {
  const areas = "property.areas property.name";
  const example = property({
    channel: { name: "gain" },
    version: 1,
    watchers: [1],
    slots: { 1: { sequence: 1, codec: valueOf("codec", "json"), value: "0.5" } },
  });
  mustHold(
    example.bytes,
    0,
    fromChapter("property", [
      "0200  01 00 00 00 ",
      "0280  02 00 00 00 ",
      "0300  04 00 00 00  67 61 69 6e ",
      "0400  01 00 00 00  03 00 00 00  01 02 00 00  00 00 00 00 ",
      "0410  30 2e 35 ",
    ]),
  );
  const { length } = buildSegment(GAIN).bytes;
  const garbage = new Uint8Array(length).fill(0xee).fill(0, 8, 12);
  const from = cases.valid(creating(garbage, GAIN), {
    name: "create",
    about: "A property of the name `gain`, in memory that holds something else.",
    clauses: areas,
    result: "ok",
    bytes: formatted(GAIN, 896),
  });
  const change = (name: string, about: string, channel: Partial<ChannelPlan>, clauses = areas) => {
    const plan = { ...GAIN, channels: [propertyOf({ name: "gain", ...channel })] };
    const isRefused = clauses === "property.areas" || (channel.name?.length ?? 0) > 124;
    const expect = isRefused
      ? { result: "refused", unchanged: true as const }
      : { result: "ok", bytes: formatted(plan, 896) };
    cases.invalid(from, member("geometry", plan), {
      name: `create_${name}`,
      about,
      clauses,
      ...expect,
    });
  };
  const none = "property.areas";
  change("data_none", "A byte area of no slots.", { capacity: 0 }, none);
  change("data_odd", "A byte area of slots that are not aligned.", { capacity: 640 }, none);
  change("writer", "A writer that is no endpoint.", { writer: 2 }, none);
  change("reader", "One endpoint alone that may read.", { reader: 1 }, none);
  change("start", "A property begins nowhere else.", { start: 16 }, none);
  change("unnamed", "A property without a name.", { name: "" });
  change("name_utf8", "A name in UTF-8.", { name: "größe µ" });
  change("name_124", "The longest name.", { name: "n".repeat(124) });
  change("name_125", "A name that is too long.", { name: "n".repeat(125) }, "property.name");
  const mixed: SegmentPlan = {
    endpoints: 3,
    channels: [
      propertyOf({ name: "a", writer: 2, capacity: 1024, label: 9 }),
      { writer: 0, reader: 1, capacity: 256 },
      propertyOf({ name: "b" }),
    ],
  };
  cases.valid(creating(new Uint8Array(buildSegment(mixed).bytes.length), mixed), {
    name: "create_mixed",
    about: "Two properties and a ring between them.",
    clauses: `${areas} segment.place`,
    result: "ok",
    bytes: formatted(mixed, 1024),
  });
}

function addNames(cases: Cases): void {
  const { bytes } = buildSegment(GAIN);
  const same = "property.same_name";
  const from = cases.valid(creating(bytes, GAIN), {
    name: "create_same",
    about: "The other side has made it already, of the same name.",
    clauses: same,
    result: "ok",
    unchanged: true,
  });
  const moved = propertyOf({ name: "gain", control_offset: 640, data_offset: 1024 });
  cases.valid(creating(buildSegment({ ...GAIN, channels: [moved], extra: 256 }).bytes, GAIN), {
    name: "create_same_elsewhere",
    about: "The same, in a segment that has its areas in other places.",
    clauses: same,
    result: "ok",
    unchanged: true,
  });
  const other = (name: string, about: string, channel: Partial<ChannelPlan>) => {
    const plan = { ...GAIN, channels: [propertyOf({ name: "gain", ...channel })] };
    const expect = { result: "segment.geometry", unchanged: true as const };
    cases.invalid(from, member("geometry", plan), {
      name: `create_other_${name}`,
      about,
      clauses: same,
      ...expect,
    });
  };
  other("name", "It has another name.", { name: "pain" });
  other("longer", "It has a longer one.", { name: "gains" });
  other("none", "It has a name.", { name: "" });
}
