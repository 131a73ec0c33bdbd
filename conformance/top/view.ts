/**
 * The figures of a segment as a person reads them.
 *
 * @module
 */

import { toCount } from "../inspect/names.ts";
import type { ChannelLook, EndpointLook } from "./look.ts";
import type { Figures } from "./rates.ts";

/** The figures as lines of text. */
export function view(figures: Figures, name: string): string {
  const { shape, size, endpoints, channels } = figures;
  const ends = [
    ["endpoint", "state", "generation", "rings/s", "owner"],
    ...endpoints.map((each) => endpointRow(each, figures.rings[each.index] ?? null)),
  ];
  const ways = [
    ["channel", "way", "written/s", "read/s", "queue", "of", "messages", "oldest", ""],
    ...channels.map((each) => channelRow(each, figures)),
  ];
  return [`${name}: ${shape}, ${toCount(size)} bytes`, "", ...table(ends), "", ...table(ways), ""]
    .join("\n");
}

function endpointRow(
  { index, state, reason, generation, agent }: EndpointLook,
  rings: number | null,
): string[] {
  const owner = agent === 0 ? "" : String(agent);
  const why = reason === null ? state : `${state}: ${reason}`;
  return [String(index), why, String(generation), rings === null ? "-" : rounded(rings), owner];
}

function channelRow(channel: ChannelLook, { rates }: Figures): string[] {
  const { index, kind, writer, reader, fault, ring } = channel;
  const way = `${writer ?? "any"} to ${reader ?? "any"}`;
  if (ring === null) return [String(index), way, "", "", "", "", "", "", fault ?? kind];
  const { written, read } = rates[index]!;
  return [
    String(index),
    way,
    bytes(written),
    bytes(read),
    ring.used === null ? "?" : toCount(ring.used),
    toCount(ring.capacity),
    ring.messages === null ? "?" : toCount(ring.messages),
    ring.oldest_us === null ? "" : time(ring.oldest_us),
    notes(ring.used, ring.reader_asks, ring.writer_asks),
  ];
}

/** What keeps the ends of a ring from going on. */
function notes(used: number | null, readerAsks: boolean, writerAsks: boolean): string {
  if (used === null) return "its cursors cannot be right";
  const all = [readerAsks ? "reader waits" : "", writerAsks ? "writer waits for room" : ""];
  return all.filter((each) => each !== "").join(", ");
}

function bytes(rate: number | null): string {
  if (rate === null) return "-";
  const steps = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const;
  for (const [unit, step] of steps) if (rate >= step) return `${rounded(rate / step)} ${unit}`;
  return `${rounded(rate)} B`;
}

function time(us: number): string {
  const steps = [["s", 1e6], ["ms", 1e3]] as const;
  for (const [unit, step] of steps) if (us >= step) return `${rounded(us / step)} ${unit}`;
  return `${us} us`;
}

/** Three digits, as far as they matter. */
function rounded(value: number): string {
  return value >= 100 ? toCount(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** Columns of one width; the last one may be as long as it likes. */
function table(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) =>
    Math.max(...rows.map((row) => [...row[column]!].length))
  );
  return rows.map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd()
  );
}
