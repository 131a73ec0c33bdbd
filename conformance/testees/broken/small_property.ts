/**
 * The small port: both ends of a property.
 *
 * @module
 */

import { Transcript } from "../../kit/crc32.ts";
import { fill, Workload } from "../../kit/live/workload.ts";
import type { Gotten, Opening, Outgoing, Ran, Task } from "../../kit/protocol.ts";
import { fromHex } from "../../reference/bytes.ts";
import { packHex, type Session } from "../server.ts";
import { has } from "./faults.ts";
import { FanoutReader, FanoutWriter } from "./small_fanout.ts";
import { decode, isProperty, nameOf, type Value } from "./small_frame.ts";
import { type Memory, pause, PortError, Refused } from "./small_memory.ts";
import { Endpoint } from "./small_port.ts";
import type { Taken } from "./small_reader.ts";
import type { Channel, Segment } from "./small_segment.ts";

const [VERSION, WATCHERS] = [0, 128];
const [SLOT_SIZE, PRESENT, CODEC, RESERVED, HEADER] = [4, 8, 9, 10, 16];
const SLOTS = 4;
const TRIES = 64;
const [DATA, BATCH, VALUES] = [1, 3, 4];
const VERSIONS = 2 ** 32;

/** The value of a property, none without it, and its version. */
interface Got {
  version: number;
  value?: Value;
}

/** What both ends know of a property. */
class Areas {
  readonly endpoint: Endpoint;
  readonly memory: Memory;
  readonly channel: Channel;

  constructor(endpoint: Endpoint, channel: Channel) {
    this.endpoint = endpoint;
    this.memory = endpoint.segment.memory;
    this.channel = channel;
  }

  /** Attaches to the property of a channel, or to the first of a name. [property.find] */
  static attach(segment: Segment, which: number | string, endpoint: number, writes: boolean) {
    segment.requireVacant(endpoint);
    const fits = (each: Channel) =>
      isProperty(each, segment.endpoints) && (!writes || each.writer === endpoint);
    const isNamed = (each: Channel) => {
      const name = nameOf(segment.memory, each.control);
      return has("property_found_any") || name !== "" && name === which;
    };
    const channel = typeof which === "number"
      ? segment.channels[which]
      : segment.channels.find((each) => fits(each) && isNamed(each));
    if (channel === undefined || !fits(channel)) throw new PortError("property.channel");
    return new Areas(Endpoint.attach(segment, endpoint, channel.writer), channel);
  }

  get slotSize(): number {
    return this.channel.capacity / SLOTS;
  }

  version(): number {
    return this.memory.load(this.channel.control + VERSION);
  }

  slot(version: number): number {
    const index = has("property_one_slot") ? 0 : version % SLOTS;
    return this.channel.data + index * this.slotSize;
  }
}

/** The end that gets. */
class PropertyReader {
  readonly #areas: Areas;
  readonly #decodes: boolean;
  #seen = 0;

  constructor(segment: Segment, which: number | string, endpoint: number, decodes: boolean) {
    this.#areas = Areas.attach(segment, which, endpoint, false);
    this.#decodes = decodes;
  }

  get endpoint(): Endpoint {
    return this.#areas.endpoint;
  }

  get(): Got {
    this.endpoint.answer(); // [property.own_state]
    if (has("property_dies")) {
      const final = this.endpoint.peerState();
      if (final !== undefined) throw final;
    }
    let version = this.#areas.version();
    for (let tries = 0; tries < TRIES; tries++) {
      if (version === 0) return { version: this.#seen = 0 };
      const { isSound, value } = this.#copy(version);
      // [property.whole]
      const found = has("property_unlooked")
        ? version
        : this.#areas.memory.look(this.#areas.slot(version));
      if (found === version) {
        if (!isSound) throw this.#fault();
        this.#seen = version;
        return { version, ...(value !== undefined && { value: this.#valueOf(value) }) };
      }
      const next = this.#areas.version();
      if (next === version) throw this.#fault(); // [property.fault]
      version = next;
    }
    throw new PortError("property.busy");
  }

  /** Waits for another version than the one that was seen. */
  changed(timeoutMs: number): void {
    const deadline = performance.now() + timeoutMs;
    let hasAsked = false;
    for (;;) {
      this.endpoint.answer();
      const final = () => this.endpoint.peerState();
      if (has("property_gone_first") && final() !== undefined) throw final()!;
      if (this.#hasChanged()) return;
      const gone = final();
      if (gone !== undefined) {
        if (this.#hasChanged()) return; // [property.gone]
        throw gone;
      }
      if (performance.now() >= deadline) throw new PortError("wait.timeout");
      const { memory, channel } = this.#areas;
      const at = channel.control + WATCHERS + 4 * (this.endpoint.index >> 5);
      const bit = 1 << (this.endpoint.index & 31);
      const ask = {
        arm: () => {
          if (!hasAsked || !has("property_asks_once")) memory.set(at, bit); // [property.watch]
          hasAsked = true;
        },
        disarm: () => {
          if (!has("property_bit_left")) memory.clear(at, bit); // [property.unwatch]
        },
      };
      const look = () =>
        this.#hasChanged() || this.endpoint.ownState() !== undefined ||
        final() !== undefined;
      this.endpoint.rest(channel.writer, ask, look, deadline);
    }
  }

  #hasChanged(): boolean {
    const version = this.#areas.version();
    return has("property_larger") ? version > this.#seen : version !== this.#seen;
  }

  /** Each field once, and what they are of. [property.bounds] */
  #copy(version: number): { isSound: boolean; value?: { codec: number; payload: Uint8Array } } {
    const { memory, slotSize } = this.#areas;
    const at = this.#areas.slot(version);
    const header = memory.bytes.slice(at, at + HEADER);
    const size = new DataView(header.buffer).getUint32(SLOT_SIZE, true);
    const [present, codec] = [header[PRESENT]!, header[CODEC]!];
    const isReserved = header.subarray(RESERVED).some((byte) => byte !== 0) &&
      !has("property_reserved_free");
    if (isReserved || present > 1) return { isSound: false };
    if (present === 0) return { isSound: size === 0 && codec === 0 };
    if (size > slotSize - HEADER && !has("property_size_trusted")) return { isSound: false };
    const payload = memory.bytes.slice(at + HEADER, at + HEADER + size);
    return { isSound: true, value: { codec, payload } };
  }

  #valueOf({ codec, payload }: { codec: number; payload: Uint8Array }): Value {
    const message = { kind: DATA, codec, tag: 0, payload };
    if (!this.#decodes) return message;
    // [property.decode]
    if (codec === BATCH || codec === VALUES) throw new PortError("message.codec");
    return decode(message)[0]!;
  }

  #fault(): PortError {
    if (has("property_marks")) return this.endpoint.failPeer("property.slot");
    return new PortError("property.slot");
  }
}

/** The end that sets. */
class PropertyWriter {
  readonly #areas: Areas;
  #version: number;

  constructor(segment: Segment, which: number | string, endpoint: number) {
    this.#areas = Areas.attach(segment, which, endpoint, true);
    this.#version = has("property_begins_anew") ? 0 : this.#areas.version(); // [property.begin]
  }

  get endpoint(): Endpoint {
    return this.#areas.endpoint;
  }

  /** Sets a value, or none. */
  set(value: { codec: number; payload: Uint8Array } | undefined): void {
    this.endpoint.answer();
    const { codec, payload } = value ?? { codec: 0, payload: new Uint8Array(0) };
    // [property.codec]
    const isMany = codec === BATCH || codec === VALUES;
    if (isMany && !has("property_batch")) throw new Refused("a property has one value");
    const { memory, channel, slotSize } = this.#areas;
    const most = slotSize - HEADER;
    if (payload.length > most && !has("property_cut")) throw new PortError("property.size");
    this.#version = this.#next(); // [property.next]
    const at = this.#areas.slot(this.#version);
    if (!has("property_unsequenced")) memory.exchange(at, this.#version); // [property.sequence]
    // [property.publish]
    if (has("property_early")) memory.store(channel.control + VERSION, this.#version);
    const header = new Uint8Array(HEADER - SLOT_SIZE);
    const size = Math.min(payload.length, most);
    new DataView(header.buffer).setUint32(0, size, true);
    header.set([value === undefined ? 0 : 1, codec], PRESENT - SLOT_SIZE);
    // [property.write]
    memory.bytes.set(
      has("property_reserved_left") ? header.subarray(0, 6) : header,
      at + SLOT_SIZE,
    );
    payload.subarray(0, size).forEach((byte, index) => memory.bytes[at + HEADER + index] = byte);
    if (!has("property_early")) memory.store(channel.control + VERSION, this.#version);
    if (!has("property_silent")) this.#wake();
  }

  close(): void {
    const hasClosed = this.endpoint.closed;
    this.endpoint.close();
    if (!hasClosed && !has("property_close_silent")) this.#wake(); // [property.close]
  }

  #next(): number {
    const version = (this.#version + 1) % VERSIONS;
    return version === 0 && !has("property_zero") ? SLOTS : version;
  }

  /** [property.wake] */
  #wake(): void {
    const { segment } = this.endpoint;
    for (let word = 0; word < Math.ceil(segment.endpoints / 32); word++) {
      const at = this.#areas.channel.control + WATCHERS + 4 * word;
      let bits = this.#areas.memory.load(at);
      if (bits === 0) continue;
      if (!has("property_bits_kept")) bits = this.#areas.memory.exchange(at, 0);
      for (let bit = 0; bit < 32; bit++) {
        const index = 32 * word + bit;
        if ((bits >>> bit & 1) === 0 || index >= segment.endpoints) continue;
        segment.ring(index, this.endpoint.index);
      }
    }
  }
}

// The small port as a testee of properties and fanouts.

type Told = (taken: Value | Taken) => ReturnType<NonNullable<Session["read"]>>;

/** Opens one end of a property. */
export function openProperty(segment: Segment, opening: Opening): Session {
  const { role, channel, property = "", values = false } = opening;
  const which = channel ?? property;
  if (role === "property_writer") {
    const writer = new PropertyWriter(segment, which, opening.endpoint ?? 0);
    const write = ({ codec, hex }: Pick<Outgoing, "codec" | "hex">) =>
      writer.set({ codec, payload: fromHex(hex) });
    return {
      write: (message) => (write(message), true),
      clear: () => writer.set(undefined),
      run: (task) =>
        runWriter(
          task,
          writer,
          (message) =>
            message.payload.length > 0
              ? writer.set({ codec: 0, payload: message.payload })
              : writer.set(undefined),
        ),
      close: () => writer.close(),
    };
  }
  const reader = new PropertyReader(segment, which, opening.endpoint ?? 1, values);
  return {
    get: () => gottenOf(reader.get()),
    changed: (timeoutMs) => reader.changed(timeoutMs),
    run: (task, timeoutMs) =>
      told(task, (transcript) => getAll(reader, task, timeoutMs, transcript)),
    close: () => reader.endpoint.close(),
  };
}

/** Opens one end of a fanout. */
export function openFanout(segment: Segment, opening: Opening, tell: Told): Session {
  const { role, channel, limit = 4096, oldest = false } = opening;
  if (role === "fanout_writer") {
    const writer = new FanoutWriter(segment, channel, opening.endpoint ?? 0);
    return {
      write: ({ kind, codec, tag, hex }, timeoutMs) =>
        writer.write({ kind, codec, tag, payload: fromHex(hex) }, timeoutMs),
      end: () => writer.end(),
      run: (task, timeoutMs) =>
        runWriter(task, writer, (message) => {
          writer.write({ kind: 1, codec: 0, ...message }, timeoutMs);
        }),
      close: () => writer.close(),
    };
  }
  const reader = new FanoutReader(segment, channel, opening.endpoint ?? 1, limit, oldest);
  return {
    read: (timeoutMs) => tell(reader.read(timeoutMs)),
    leave: () => reader.leave(),
    join: () => reader.join(),
    run: (task, timeoutMs) =>
      told(task, (transcript) => readAll(reader, task, timeoutMs, transcript)),
    close: () => reader.close(),
  };
}

function gottenOf({ version, value }: Got): Gotten {
  if (value === undefined) return { version };
  const { payload, ...rest } = value;
  return { version, item: payload === undefined ? rest : { ...rest, hex: packHex(payload) } };
}

/** Runs something that has a transcript; what ends it is its end. */
function told(task: Task, run: (transcript: Transcript) => string): Ran {
  const transcript = new Transcript(task.record);
  const tell = (end: string, reason?: string | number): Ran => {
    const { count, size, crc32, record, lost } = transcript;
    const ran: Ran = { count, size, crc32, end };
    if (reason !== undefined) ran.reason = reason;
    if (record !== undefined) ran.record = record;
    if (task.lossy) ran.lost = lost;
    return ran;
  };
  try {
    return tell(run(transcript));
  } catch (error) {
    if (!(error instanceof PortError)) throw error;
    return tell(error.code, error.reason);
  }
}

function runWriter(
  task: Task,
  writer: { end?(): void; close(): void },
  write: (message: { tag: number; payload: Uint8Array }) => void,
): Ran {
  return told(task, (transcript) => {
    const workload = new Workload(task.seed, task.capacity);
    const scratch = new Uint8Array(workload.sizeMax);
    for (let index = 0; index < task.count!; index++) {
      rest(task, index);
      const message = workload.next();
      const payload = fill(message, scratch);
      write({ tag: message.tag, payload });
      transcript.add(message.tag, payload);
    }
    if (task.then === "close") writer.close();
    else if (task.then === "end") writer.end?.();
    return "done";
  });
}

/** Gets each value that is another one than the last, up to the version of the count. */
function getAll(
  reader: PropertyReader,
  task: Task,
  timeoutMs: number,
  transcript: Transcript,
): string {
  let last = "";
  for (;;) {
    const got = tryGet(reader);
    if (got !== undefined && got.version !== 0) {
      const { version, value } = got;
      const now = `${version} ${value === undefined ? "" : packHex(value.payload!)}`;
      if (now !== last) {
        if (value === undefined) transcript.addNone(version);
        else transcript.add(version, value.payload!);
      }
      last = now;
      if (version === task.count) return "ended";
    }
    if (task.wait === "block") reader.changed(timeoutMs);
  }
}

function tryGet(reader: PropertyReader): Got | undefined {
  try {
    return reader.get();
  } catch (error) {
    if (error instanceof PortError && error.code === "property.busy") return undefined;
    throw error;
  }
}

function readAll(
  reader: FanoutReader & { endpoint: Endpoint },
  task: Task,
  timeoutMs: number,
  transcript: Transcript,
): string {
  for (let index = 0; index < (task.count ?? Infinity); index++) {
    rest(task, index);
    try {
      const message = reader.read(timeoutMs);
      if (message === "ended") return "ended";
      if (message === undefined) throw new PortError("wait.timeout");
      transcript.add(message.tag, message.payload);
    } catch (error) {
      if (!(error instanceof PortError && error.count !== undefined && task.lossy)) throw error;
      transcript.addNone(error.count);
      transcript.lost += error.count;
    }
  }
  if (task.then === "close") reader.close();
  return "done";
}

function rest({ delay_us, delay_every }: Task, index: number): void {
  if (delay_us !== undefined && index % delay_every! === 0) pause(delay_us / 1000);
}
