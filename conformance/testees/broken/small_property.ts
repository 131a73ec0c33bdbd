/**
 * The small port: both ends of a property.
 *
 * @module
 */

import { has } from "./faults.ts";
import { decode, type Value } from "./small_codec.ts";
import { Endpoint } from "./small_endpoint.ts";
import { isProperty, nameOf } from "./small_kinds.ts";
import { type Memory, PortError, Refused } from "./small_memory.ts";
import type { Channel, Segment } from "./small_segment.ts";

const [VERSION, WATCHERS] = [0, 128];
const [SLOT_SIZE, PRESENT, CODEC, RESERVED, HEADER] = [4, 8, 9, 10, 16];
const SLOTS = 4;
const TRIES = 64;
const [DATA, BATCH, VALUES] = [1, 3, 4];
const VERSIONS = 2 ** 32;

/** The value of a property, none without it, and its version. */
export interface Got {
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
export class PropertyReader {
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
export class PropertyWriter {
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
