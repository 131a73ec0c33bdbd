/**
 * The CRC-32 of zlib and PNG, of transcripts that grow.
 *
 * @module
 */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ value >>> 1 : value >>> 1;
  return value;
});

/** Returns the checksum of bytes that follow on those of which `before` is the checksum. */
export function crc32(bytes: Uint8Array, before = 0): number {
  let value = ~before;
  for (let index = 0; index < bytes.length; index++) {
    value = TABLE[(value ^ bytes[index]!) & 255]! ^ value >>> 8;
  }
  return ~value >>> 0;
}

/** Stands for the size of an entry without a message. */
export const NO_MESSAGE = 0xffffffff;

/** What was written or read, in order: tags, sizes and payloads. */
export class Transcript {
  count = 0;
  size = 0;
  crc32 = 0;
  /** Messages of which only a report came, where they are counted. */
  lost = 0;
  /** Each message, where they are wanted: its tag, its size, and its own checksum. */
  readonly record: [number, number, number][] | undefined;
  readonly #words = new Uint8Array(8);

  constructor(keeps = false) {
    this.record = keeps ? [] : undefined;
  }

  /** Adds a message. */
  add(tag: number, payload: Uint8Array): void {
    this.#add(tag, payload.length);
    this.crc32 = crc32(payload, this.crc32);
    this.size += payload.length;
    this.record?.push([tag, payload.length, crc32(payload)]);
  }

  /** Adds an entry without a message: a version without a value, or how many messages were lost. */
  addNone(tag: number): void {
    this.#add(tag, NO_MESSAGE);
    this.record?.push([tag, NO_MESSAGE, 0]);
  }

  #add(tag: number, size: number): void {
    const view = new DataView(this.#words.buffer);
    view.setUint32(0, tag, true);
    view.setUint32(4, size, true);
    this.crc32 = crc32(this.#words, this.crc32);
    this.count++;
  }
}
