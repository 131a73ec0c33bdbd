/**
 * What the inspector finds, as plain data: what `--json` prints, as
 * `conformance/inspect.schema.json` describes it. Numbers are as they stand in memory; names stand
 * beside them where they have one.
 *
 * @module
 */

import { reasonOf } from "../reference/layout.ts";
import { meaningOf, textOf } from "./names.ts";

/** What memory can be read as. A mailbox has no magic, so somebody must say, or guess. */
export type Track = "segment" | "mailbox";

/** What is looked at, and how much of it. */
export interface InspectOptions {
  /** How to read the bytes; what they look like when left out. */
  as?: Track;
  /** Only this channel. */
  channel?: number;
  /** Most frames, reports and notes of one channel; all are checked and counted. 32 if left out. */
  limit?: number;
  /** Milliseconds since 1970 up to which the times of frames are reckoned; now if left out. */
  now?: number;
}

/** What is wrong: what an endpoint that attaches or reads would report. */
export interface Fault {
  /** A reason code. */
  code: string;
  /** Its number. */
  value: number;
  /** What the code means, from `spec/layout.json`. */
  meaning: string;
  /** What is wrong here. */
  fact: string;
  /** The clause that demands the check. */
  clause: string;
  /** Its sentence, from the chapter. */
  text: string;
  /** Where the word, the field or the frame begins; null where there is no such place. */
  offset: number | null;
  channel?: number;
  endpoint?: number;
}

/** A message that a reader loses, or a value that nobody gets, without any harm to the channel. */
export interface Report {
  code: string;
  fact: string;
  /** Where the frame begins at which it is lost, or the slot of the value. */
  offset: number;
  channel?: number;
}

/** What no reader has to refuse, and somebody may want to know. */
export interface Note {
  fact: string;
  /** The writer's or the creator's duty that is broken; absent where none is. */
  clause?: string;
  offset?: number;
  channel?: number;
  endpoint?: number;
}

/** The header. A field is null where the memory ends before it. */
export interface Header {
  magic: string;
  ready: number | null;
  ready_name: string;
  version_major: number | null;
  version_minor: number | null;
  size: number | null;
  required_features: number | null;
  optional_features: number | null;
  endpoint_count: number | null;
  channel_count: number | null;
}

/** An endpoint record. */
export interface Endpoint {
  index: number;
  offset: number;
  bell: number;
  state: number;
  state_name: string;
  /** The reason beside failed: a code, or `reason` and a number; null where there is none. */
  reason: string | null;
  wakes: number;
  wakes_names: string[];
  agent: number;
  /** How often it was vacated. */
  generation: number;
  features: number;
  /** The endpoints whose bits stand in it: those that have rung, and were not looked at since. */
  rung: number[];
  /** The other endpoints at the ends of its channels. */
  peers: number[];
}

/** A channel descriptor, and its ring or its property where that can be read. */
export interface Channel {
  index: number;
  offset: number;
  kind: number;
  kind_name: string;
  writer: number;
  reader: number;
  control_offset: number;
  control_size: number;
  data_offset: number;
  data_size: number;
  label: number;
  start: number;
  ring?: Ring;
  property?: Property;
}

/** A `wants` word: whether its owner asks to be rung, and when. */
export interface Wants {
  value: number;
  /** The endpoint that asks. */
  owner: number;
  /** The position of the peer's cursor at which it asks; null where it does not. */
  target: number | null;
  /** How many bytes that cursor has yet to go; 0 or less: it has reached the target. */
  missing: number | null;
}

/** The cursors of a ring, what follows from them, and its frames. */
export interface Ring {
  tail: number;
  head: number;
  /** The places of the two positions in the byte area. */
  tail_place: number;
  head_place: number;
  /** Bytes that are published and not given back; null where the cursors cannot be. */
  used: number | null;
  free: number | null;
  /** Bytes that anything but `end` may still take. */
  room: number | null;
  /** Whether what is used goes on at the beginning of the byte area. */
  wraps: boolean;
  /** Where reading begins: at `head`, or at `start` where no reader has ever been there. */
  from: "head" | "start";
  reader_wants: Wants;
  writer_wants: Wants;
  /** All frames up to the fault, shown or not. */
  frame_count: number;
  /** Messages of which all frames are there. */
  message_count: number;
  ended: boolean;
  /** The message of which the last frame is not there yet. */
  in_progress?: Progress;
  frames: Frame[];
}

/** How much of a multipart message has come. */
export interface Progress {
  /** Bytes so far; of a message that began before the first frame here, of what is here. */
  received: number;
  /**
   * What the preamble states, exact up to 2^53; `unknown` where the writer did not know it, null
   * where the preamble is not here any more.
   */
  total: number | "unknown" | null;
}

/** The header extension of a frame. */
export interface Extension {
  offset: number;
  size: number;
  kind: number;
}

/** A frame. */
export interface Frame {
  offset: number;
  position: number;
  extent: number;
  size: number;
  kind: number;
  kind_name: string;
  flags: number;
  flags_names: string[];
  codec: number;
  codec_name: string;
  tag: number;
  time: number;
  /** When that was, reckoned from `now`; null where it is 0. */
  date: string | null;
  extension?: Extension;
  payload: Payload;
  /** Of a chunk: how far its message is after this frame. */
  progress?: Progress;
  /** The check that it fails. */
  fault?: string;
  /** What is lost with it. */
  report?: string;
}

/** What a property holds. */
export interface Property {
  /** In quotes; null where it has none. */
  name: string | null;
  /** Number of the last complete value; 0 where none was ever set. */
  version: number;
  /** The endpoints that ask to be rung. */
  watchers: number[];
  /** In their order in memory. */
  slots: PropertySlot[];
}

/** A slot of a property. */
export interface PropertySlot {
  index: number;
  offset: number;
  /**
   * The last complete value, one of the three before it, the next one, which was begun, or nothing
   * that the version accounts for.
   */
  holds: "last" | "older" | "begun" | "nothing";
  sequence: number;
  size: number;
  /** 1 where there is a value, 0 where it was taken back. */
  present: number;
  codec: number;
  codec_name: string;
  /** Of what it holds, as far as the words can be trusted. */
  value: Payload;
}

/** Bytes of a frame after all headers, a mailbox's part, or the value of a property. */
export interface Payload {
  offset: number;
  size: number;
  form: "none" | "text" | "hex";
  /** The first of them, with control characters escaped. */
  preview: string;
}

/** A mailbox. A word is null where the memory ends before it. */
export interface Mailbox {
  status: number | null;
  status_name: string;
  signal: number | null;
  signal_name: string;
  length: number | null;
  part_count: number | null;
  part_index: number | null;
  capacity: number;
  /** Whose turn it is, or that it is closed. */
  turn: string;
  /** The part under way, as far as the words can be trusted. */
  part?: Payload;
}

/** Everything that was found. */
export interface Inspection {
  version: 1;
  as: Track;
  /** Why the bytes were read so. */
  because: string;
  /** Bytes of the memory. */
  memory: number;
  /** In a word: a pipe, a port, a hub of 3 clients. */
  shape: string;
  /** The first thing that is wrong; null where nothing is. */
  fault: Fault | null;
  /** All of them: of the segment, of its channels, of its endpoints. */
  faults: Fault[];
  reports: Report[];
  report_count: number;
  notes: Note[];
  note_count: number;
  header?: Header;
  endpoints?: Endpoint[];
  channels?: Channel[];
  mailbox?: Mailbox;
}

// What an inspection collects while it looks: faults, reports and notes, in the order found, no
// more of them than anybody would read.

/** Where something was found. */
interface Spot {
  offset?: number;
  channel?: number;
  endpoint?: number;
}

/** The clause that demands the check that a reason code reports. */
function clauseOf(code: string): string {
  if (code === "segment.unready") return "segment.await";
  if (code === "segment.state") return "segment.state_invalid";
  if (code === "mailbox.size") return "mailbox.section";
  if (code === "ring.cursor") return "ring.cursor";
  return `${code.split(".")[0]}.check`;
}

/** Collects. */
export class Findings {
  readonly faults: Fault[] = [];
  readonly reports: Report[] = [];
  readonly notes: Note[] = [];
  readonly #limit: number;
  reportCount = 0;
  noteCount = 0;
  /** How many of each were kept for a channel, or, without one, for everything else. */
  readonly #kept = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Something that an endpoint refuses. */
  fault(code: string, fact: string, { offset, ...spot }: Spot = {}): void {
    const clause = clauseOf(code);
    this.faults.push({
      code,
      value: reasonOf(code),
      meaning: meaningOf(code),
      fact,
      clause,
      text: textOf(clause),
      offset: offset ?? null,
      ...spot,
    });
  }

  /** A message that a reader loses. */
  report(code: string, fact: string, spot: { offset: number; channel?: number }): void {
    this.reportCount += 1;
    if (this.#countFinding("report", spot)) this.reports.push({ code, fact, ...spot });
  }

  /** Something worth knowing; `clause` where it breaks a duty. */
  note(fact: string, spot: Spot = {}, clause?: string): void {
    this.noteCount += 1;
    if (!this.#countFinding("note", spot)) return;
    this.notes.push({ fact, ...(clause !== undefined && { clause }), ...spot });
  }

  /** Counts a finding of a channel. Returns whether it is within the limit, and kept. */
  #countFinding(what: string, { channel }: Spot): boolean {
    const key = `${what} ${channel}`;
    const count = this.#kept.get(key) ?? 0;
    this.#kept.set(key, count + 1);
    return count < this.#limit;
  }
}
