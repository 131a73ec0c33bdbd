/**
 * An inspection as text: the order of the memory, offsets in hexadecimal, sizes and positions in
 * decimal numbers, as in the chapters.
 *
 * @module
 */

import type {
  Channel,
  Endpoint,
  Fault,
  Frame,
  Header,
  Inspection,
  Mailbox,
  Progress,
  Property,
  Ring,
  Wants,
} from "./inspection.ts";
import { toCount, toEnd, toHexNumber, toPlural, toState } from "./names.ts";

/** How an inspection is printed. */
export interface FormatOptions {
  /** What stands in front of the first line: the name of a file. */
  name?: string;
  /** Whether to use the colours of a terminal. */
  color?: boolean;
}

type Style = "heading" | "bad" | "odd" | "faint";

const CODES: Record<Style, number> = { heading: 1, bad: 31, odd: 33, faint: 2 };

/** Paints a text, or leaves it. */
type Paint = (style: Style, text: string) => string;

const NONE = "-";
/** Faults that are named after the first one. */
const ALSO = 16;

/** Prose is wrapped at this column. */
const WIDTH = 100;

/** An inspection as text; every line ends with a line break. */
export function format(found: Inspection, options: FormatOptions = {}): string {
  const paint = painter(options);
  const { header, endpoints = [], channels = [], mailbox } = found;
  const lines = [
    ...formatTop(found, options, paint),
    ...(header ? formatHeader(header, paint) : []),
    ...(endpoints.length > 0 ? formatEndpoints(endpoints, paint) : []),
    ...channels.flatMap((channel) => formatChannel(channel, paint)),
    ...(mailbox ? formatMailbox(mailbox, paint) : []),
    ...formatReports(found, paint),
    ...formatNotes(found, paint),
  ];
  return join(lines);
}

/** Only what it is, and what is wrong with it: what stands above a dump. */
export function formatVerdict(found: Inspection, options: FormatOptions = {}): string {
  return join(formatTop(found, options, painter(options)));
}

function painter({ color = false }: FormatOptions): Paint {
  return (style, text) => color ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
}

function join(lines: string[]): string {
  while (lines.at(-1) === "") lines.pop();
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function formatTop(found: Inspection, { name }: FormatOptions, paint: Paint): string[] {
  const { shape, memory, as, because } = found;
  const prefix = name === undefined ? "" : `${name}: `;
  return [
    paint("heading", `${prefix}${shape} in ${toPlural(memory, "byte")}`),
    paint("faint", `read as a ${as}: ${because}`),
    "",
    ...formatFaults(found, paint),
  ];
}

function formatFaults({ faults }: Inspection, paint: Paint): string[] {
  if (faults.length === 0) return ["no fault", ""];
  const [first, ...others] = faults as [Fault, ...Fault[]];
  const more = others.length - ALSO;
  return [
    paint("bad", `FAULT ${first.code} (${first.value})${placeOf(first)}`),
    ...wrap(paint("bad", first.fact), "  "),
    ...wrap(first.meaning, "  "),
    ...wrap(`[${first.clause}] ${first.text}`, "  "),
    ...others.slice(0, ALSO).map((fault) =>
      paint("bad", `also ${fault.code}${placeOf(fault)}: ${fault.fact}`)
    ),
    ...moreOf(more),
    "",
  ];
}

function formatHeader(header: Header, paint: Paint): string[] {
  const show = (value: number | null) => value === null ? "not there" : toCount(value);
  const bits = (value: number | null) => value === null ? "not there" : toHexNumber(value);
  return [
    paint("heading", "HEADER"),
    `  magic ${header.magic}   ready ${show(header.ready)} ${header.ready_name}   ` +
    `version ${show(header.version_major)}.${show(header.version_minor)}   ` +
    `size ${show(header.size)}`,
    `  endpoints ${show(header.endpoint_count)}   channels ${show(header.channel_count)}   ` +
    `features required ${bits(header.required_features)}, ` +
    `optional ${bits(header.optional_features)}`,
    "",
  ];
}

function formatEndpoints(endpoints: Endpoint[], paint: Paint): string[] {
  const rows = endpoints.map((endpoint) => {
    const { index, offset, bell, generation, wakes_names, features, agent } = endpoint;
    return [
      String(index),
      toHexNumber(offset),
      String(bell),
      formatState(endpoint),
      String(generation),
      wakes_names.join(" ") || "none",
      toHexNumber(features),
      agent === 0 ? NONE : String(agent),
      endpoint.rung.join(" ") || NONE,
      endpoint.peers.join(" ") || NONE,
    ];
  });
  const head = [
    "#",
    "at",
    "bell",
    "state",
    "generation",
    "wakes",
    "features",
    "agent",
    "rung by",
    "peers",
  ];
  return [paint("heading", "ENDPOINTS"), ...table([head, ...rows], paint), ""];
}

/** A state; its upper bits only where they are not those of the generation beside it. */
function formatState({ state, state_name, reason, generation }: Endpoint): string {
  if (reason !== null) return `${state_name}: ${reason}`;
  const { bits } = toState(state);
  return bits === generation % 2 ** 24 ? state_name : `${state_name}, above it ${bits}`;
}

function formatChannel(channel: Channel, paint: Paint): string[] {
  const { index, kind_name, writer, reader, label, start, ring, property } = channel;
  const area = (offset: number, size: number) =>
    `area ${toHexNumber(offset)}, ${toPlural(size, "byte")}`;
  const name = typeof property?.name === "string" ? ` ${property.name}` : "";
  const lines = [
    paint("heading", `CHANNEL ${index}`) +
    ` ${kind_name}${name}, from endpoint ${toEnd(writer)} to ${toEnd(reader)}, label ${label}`,
    `  control ${area(channel.control_offset, channel.control_size)}` +
    `   byte ${area(channel.data_offset, channel.data_size)}   start ${start}`,
  ];
  if (property !== undefined) return [...lines, ...formatProperty(property, paint), ""];
  if (ring === undefined) return [...lines, ""];
  return [...lines, ...formatRing(channel, ring, paint), ""];
}

function formatRing({ writer, reader, data_offset }: Channel, ring: Ring, paint: Paint): string[] {
  const { tail, head, used, from } = ring;
  const cursor = (position: number, place: number) =>
    used === null ? String(position) : `${position}, at ${toHexNumber(data_offset + place)}`;
  const lines = [
    `  tail ${cursor(tail, ring.tail_place)}   head ${cursor(head, ring.head_place)}`,
    formatRoom(ring),
    `  reader_wants ${formatWants(ring.reader_wants, "tail")}`,
    `  writer_wants ${formatWants(ring.writer_wants, "head")}`,
  ];
  if (used === null) return lines;
  if (ring.frame_count > 0) {
    const counts = `${toPlural(ring.frame_count, "frame")}, ` +
      `${toPlural(ring.message_count, "message")} complete`;
    lines.push(`  ${counts}${ring.ended ? `, and end: endpoint ${writer} is done` : ""}`);
  }
  if (from === "start" && used > 0) {
    lines.push(`  endpoint ${reader} has never been there: it will read from start`);
  }
  if (ring.frames.length > 0) lines.push(...formatFrames(ring, paint));
  if (ring.in_progress !== undefined) {
    lines.push(`  a message is in progress: ${formatProgress(ring.in_progress)}`);
  }
  return lines;
}

function formatRoom({ used, free, room, wraps }: Ring): string {
  if (used === null) return "  the cursors cannot be right, so nothing in the ring can be found";
  const where = wraps ? ", around the end of the byte area" : "";
  const extra = room === 0 && free! > 0 ? "only for `end`" : `${toCount(room!)} but for \`end\``;
  const empty = used === 0 ? "empty" : free === 0 ? "full" : `used ${toCount(used)}${where}`;
  return `  ${empty}   free ${toCount(free!)}${free === 0 ? "" : ` (${extra})`}`;
}

/** Who asks, at which position, and how far off that is. */
function formatWants({ value, owner, target, missing }: Wants, cursor: string): string {
  if (target === null || missing === null) return `0: endpoint ${owner} does not ask to be rung`;
  const asks = `${toHexNumber(value)}: endpoint ${owner} asks to be rung when ${cursor} reaches`;
  const when = missing > 0 ? `in ${toPlural(missing, "byte")}` : "which it has: the ring is due";
  return `${asks} ${target}, ${when}`;
}

function formatProgress({ received, total }: Progress): string {
  if (total === null) return `${toCount(received)} here, begun before`;
  const all = total === "unknown" ? "a size that its writer did not know" : toCount(total);
  return `${toCount(received)} of ${all}`;
}

function formatFrames({ frames, frame_count }: Ring, paint: Paint): string[] {
  // Times reach back 36 minutes: nearly always, all of them are of one day.
  const days = [...new Set(frames.flatMap(({ date }) => date === null ? [] : date.slice(0, 10)))];
  const toTime = (date: string) => days.length === 1 ? date.slice(11, -1) : date;
  const rows = frames.map((frame) => [
    toHexNumber(frame.offset),
    String(frame.position),
    frame.kind_name,
    frame.flags_names.join("|") || NONE,
    frame.codec === 0 && isBare(frame) ? NONE : frame.codec_name,
    frame.tag === 0 && isBare(frame) ? NONE : String(frame.tag),
    frame.date === null ? NONE : toTime(frame.date),
    String(frame.size),
    formatPayload(frame),
  ]);
  const marks = frames.map(({ fault, report }) =>
    fault !== undefined ? "bad" : report !== undefined ? "odd" : undefined
  );
  const head = [
    "at",
    "position",
    "kind",
    "flags",
    "codec",
    "tag",
    days.length === 1 ? days[0]! : "time",
    "size",
    "payload",
  ];
  const lines = table([head, ...rows], paint, [undefined, ...marks]);
  const more = frame_count - frames.length;
  // A frame with a fault stands after those that are left out.
  const at = frames.at(-1)?.fault === undefined ? lines.length : lines.length - 1;
  if (more > 0) lines.splice(at, 0, `  … ${toPlural(more, "frame")} more`);
  return lines;
}

/** Whether a frame has neither a codec nor a tag. */
function isBare({ kind_name }: Frame): boolean {
  return kind_name === "pad" || kind_name === "end";
}

function formatPayload({ payload, extension, progress, fault, report }: Frame): string {
  const facts = [
    extension && `{${toHexNumber(extension.kind)}: ${toPlural(extension.size, "byte")}}`,
    payload.preview,
    progress === undefined ? "" : `(${progress.received}/${toTotal(progress)})`,
    fault === undefined ? "" : `<- ${fault}`,
    report === undefined ? "" : `<- ${report}`,
  ];
  return facts.filter((fact) => fact !== undefined && fact !== "").join(" ");
}

/** `?` for what is not here any more, `…` for what the writer did not know. */
function toTotal({ total }: Progress): string {
  return total === null ? "?" : total === "unknown" ? "…" : String(total);
}

function formatProperty({ version, watchers, slots }: Property, paint: Paint): string[] {
  const set = version === 0 ? "version 0: never set" : `version ${version}`;
  const watch = watchers.length === 0 ? "nobody" : `endpoint ${watchers.join(" ")}`;
  const rows = slots.map(({ index, offset, holds, sequence, size, present, codec_name, value }) => [
    toHexNumber(offset),
    String(index),
    holds,
    String(sequence),
    ...(holds === "nothing" ? [NONE, NONE, ""] : present === 0 ? [NONE, NONE, "taken back"] : [
      String(size),
      codec_name,
      value.preview,
    ]),
  ]);
  const head = ["at", "slot", "holds", "sequence", "size", "codec", "value"];
  return [`  ${set}   watched by ${watch}`, ...table([head, ...rows], paint)];
}

function formatMailbox(mailbox: Mailbox, paint: Paint): string[] {
  const show = (value: number | null) => value === null ? "not there" : String(value);
  const signed = (value: number | null) => value === null ? "not there" : String(value | 0);
  const { part, part_index, part_count } = mailbox;
  return [
    paint("heading", "MAILBOX"),
    `  status ${signed(mailbox.status)} ${mailbox.status_name}   ` +
    `signal ${signed(mailbox.signal)} ${mailbox.signal_name}   turn: ${mailbox.turn}`,
    `  length ${show(mailbox.length)}   part_count ${show(part_count)}   ` +
    `part_index ${show(part_index)}   capacity ${toCount(mailbox.capacity)}`,
    ...(part
      ? [`  part ${part_index! + 1} of ${part_count}, ${part.size} bytes: ${part.preview}`]
      : []),
    "",
  ];
}

function formatReports({ reports, report_count }: Inspection, paint: Paint): string[] {
  if (report_count === 0) return [];
  return [
    paint("heading", "UNREADABLE") + " (the channel goes on)",
    ...reports.map(({ code, fact, ...spot }) => `  ${paint("odd", code)}${placeOf(spot)}: ${fact}`),
    ...moreOf(report_count - reports.length),
    "",
  ];
}

function formatNotes({ notes, note_count }: Inspection, paint: Paint): string[] {
  if (note_count === 0) return [];
  return [
    paint("heading", "NOTES") + " (nobody refuses these)",
    ...notes.map(({ fact, clause, ...spot }) =>
      `  ${fact}${placeOf(spot)}${clause === undefined ? "" : paint("faint", ` [${clause}]`)}`
    ),
    ...moreOf(note_count - notes.length),
    "",
  ];
}

function placeOf({ offset = null, channel }: { offset?: number | null; channel?: number }): string {
  const where = offset === null ? "" : ` at ${toHexNumber(offset)}`;
  return channel === undefined ? where : `${where}, channel ${channel}`;
}

function moreOf(count: number): string[] {
  return count > 0 ? [`  … ${toCount(count)} more`] : [];
}

/** Columns as wide as their widest cell; the last one runs on. */
function table(rows: string[][], paint: Paint, marks: (Style | undefined)[] = []): string[] {
  const widths = rows[0]!.map((_, column) =>
    Math.max(...rows.map((row) => [...row[column]!].length))
  );
  return rows.map((row, index) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column]!));
    const line = `  ${cells.join("  ")}`.trimEnd();
    const style = index === 0 ? "faint" : marks[index];
    return style === undefined ? line : paint(style, line);
  });
}

/** Prose in lines that a terminal can show. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(" ")) {
    if (line !== indent && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
    }
    line += line === indent ? word : ` ${word}`;
  }
  return [...lines, line];
}
