/**
 * SHA-1 and SHA-256, computed synchronously on the calling thread. The bytes are read in place,
 * also from shared memory, which WebCrypto and `node:crypto` do not accept.
 *
 * SHA-1 is for transcripts and tests, and for formats that prescribe it: anyone who wants to can
 * make two texts with the same SHA-1. Where somebody may gain by that, use SHA-256.
 *
 * @example Both ends take a digest of what they sent or got, and compare
 * ```ts
 * import { Port } from "@millrace/millrace";
 * import { Sha1 } from "@millrace/millrace/digest";
 * import { peek, release } from "@millrace/millrace/lend";
 *
 * const here = Port.create<Uint8Array>({ codec: "bytes" });
 * const there = Port.attach<Uint8Array>(here.memory); // usually in another thread
 * const [sent, seen] = [new Sha1(), new Sha1()];
 * for (let n = 0; n < 3; n++) {
 *   const message = new Uint8Array(100).fill(n);
 *   sent.update(message);
 *   here.write(message);
 * }
 * for (const _ of [1, 2, 3]) {
 *   const { area, offset, size } = peek(there)!;
 *   seen.update(area.subarray(offset, offset + size)); // as it lies in the ring
 *   release(there);
 * }
 * console.log(sent.hex() === seen.hex()); // true
 * ```
 *
 * @module
 */

import { hashBlocks } from "./core.ts";
import { BLOCK_SIZE, type Kind, SHA1, SHA256 } from "./kind.ts";
import { isBytes, requireMemory } from "../memory/realm.ts";

/** Offset in the last block of the message's length in bits. */
const LENGTH_OFFSET = BLOCK_SIZE - 8;
const PAD = 0x80;
/** The number of bytes that have 2^32 bits. */
const CARRY = 2 ** 29;

/**
 * A digest in progress. Reading the result changes nothing, and more bytes can follow: so a
 * transcript has a digest at every point.
 *
 * It belongs to one thread. If another thread writes to shared bytes while they are read, each byte
 * counts with its old or its new value. The digest then fits no definite text, but nothing else is
 * affected.
 *
 * @example
 * ```ts
 * import { type Digest, Sha1, Sha256 } from "@millrace/millrace/digest";
 *
 * const digests: Digest[] = [new Sha1(), new Sha256()];
 * for (const digest of digests) digest.update(new Uint8Array(1000));
 * console.log(digests.map(({ size }) => size).join()); // 20,32
 * ```
 */
export abstract class Digest {
  /** The name, which a bundler would shorten. @internal */
  static readonly name: string = "Digest";

  /** The size of the result in bytes. */
  readonly size: number;
  readonly #kind: Kind;
  readonly #state: Int32Array = new Int32Array(8);
  /** The bytes that do not fill a block yet; after them, there is room for the padding. */
  readonly #rest: Uint8Array = new Uint8Array(2 * BLOCK_SIZE);
  #restSize = 0;
  /** The number of bytes so far. */
  #length = 0;

  /** Begins an empty digest. Only for the classes of this module. */
  constructor(kind: unknown) {
    if (kind !== SHA1 && kind !== SHA256) {
      throw new TypeError("Cannot make a digest: it is made as Sha1 or Sha256");
    }
    const known: Kind = kind as Kind;
    this.#kind = known;
    this.size = known.size;
    this.reset();
  }

  /** The number of bytes given so far. */
  get length(): number {
    return this.#length;
  }

  /**
   * Appends bytes. They are read during the call, and not kept. It allocates nothing, except that
   * SHA-1 makes a view for each 64 KiB of an array that is longer than that.
   *
   * It takes only bytes, because a text has a different digest in each encoding.
   * `new TextEncoder().encode(text)` makes the usual bytes.
   *
   * @example
   * ```ts
   * import { Sha256 } from "@millrace/millrace/digest";
   *
   * const shared = new Uint8Array(new SharedArrayBuffer(1024));
   * const digest = new Sha256().update(shared).update(new TextEncoder().encode("and a text"));
   * console.log(digest.length); // 1034
   * ```
   *
   * @throws {TypeError} if the argument is not a `Uint8Array`, or its memory was transferred
   */
  update(bytes: Uint8Array): this {
    if (!isBytes(bytes)) throw refusal(bytes);
    requireMemory(bytes);
    const size = bytes.length;
    let from = 0;
    if (this.#restSize > 0) {
      from = Math.min(BLOCK_SIZE - this.#restSize, size);
      this.#keep(bytes, 0, from);
      if (this.#restSize === BLOCK_SIZE) {
        hashBlocks(this.#kind, this.#state, this.#rest, 0, BLOCK_SIZE);
        this.#restSize = 0;
      }
    }
    const to = size - (size - from) % BLOCK_SIZE;
    if (from < to) hashBlocks(this.#kind, this.#state, bytes, from, to);
    // If the bytes did not fill the begun block, `from` is the end already, and nothing is kept
    // twice.
    this.#keep(bytes, to, size);
    this.#length += size;
    return this;
  }

  /**
   * Returns the digest of all bytes so far, in a new array.
   *
   * @example
   * ```ts
   * import { Sha1 } from "@millrace/millrace/digest";
   *
   * const digest = new Sha1();
   * const [before, after] = [digest.digest(), digest.update(Uint8Array.of(7)).digest()];
   * console.log(before.length, before[0], after[0]); // 20 218 93
   * ```
   */
  digest(): Uint8Array<ArrayBuffer> {
    const result = new Uint8Array(this.size);
    this.digestInto(result);
    return result;
  }

  /**
   * Writes the digest of all bytes so far to the beginning of an array. Allocates nothing.
   *
   * @example
   * ```ts
   * import { Sha1 } from "@millrace/millrace/digest";
   *
   * const result = new Uint8Array(20);
   * new Sha1().digestInto(result);
   * console.log(result[0]); // 218
   * ```
   *
   * @throws {RangeError} if the array is too short
   */
  digestInto(target: Uint8Array): void {
    if (!isBytes(target)) throw refusal(target);
    const size = this.size;
    if (target.length < size) {
      throw new RangeError(
        `Cannot write digest: it has ${size} bytes, and the array ${target.length}`,
      );
    }
    this.#finish();
    for (let at = 0; at < size; at++) {
      target[at] = (result[at >> 2] as number) >>> (24 - 8 * (at & 3));
    }
  }

  /**
   * Returns the digest of all bytes so far, in hexadecimal.
   *
   * @example
   * ```ts
   * import { Sha1 } from "@millrace/millrace/digest";
   *
   * console.log(new Sha1().hex()); // da39a3ee5e6b4b0d3255bfef95601890afd80709
   * ```
   */
  hex(): string {
    this.#finish();
    let text = "";
    for (let word = 0; word < this.size / 4; word++) {
      text += ((result[word] as number) >>> 0).toString(16).padStart(8, "0");
    }
    return text;
  }

  /**
   * Forgets all bytes, and begins again.
   *
   * @example
   * ```ts
   * import { Sha1 } from "@millrace/millrace/digest";
   *
   * const digest = new Sha1().update(new Uint8Array(10));
   * console.log(digest.reset().hex() === new Sha1().hex()); // true
   * ```
   */
  reset(): this {
    const { initial } = this.#kind;
    for (let word = 0; word < initial.length; word++) this.#state[word] = initial[word] as number;
    this.#restSize = 0;
    this.#length = 0;
    return this;
  }

  /**
   * Returns a copy, which has got the same bytes.
   *
   * @example
   * ```ts
   * import { Sha256 } from "@millrace/millrace/digest";
   *
   * const begun = new Sha256().update(new Uint8Array(100));
   * const other = begun.clone().update(Uint8Array.of(1));
   * console.log(begun.length, other.length); // 100 101
   * ```
   */
  clone(): this {
    const other = new (this.constructor as new () => this)();
    other.#state.set(this.#state);
    other.#rest.set(this.#rest);
    other.#restSize = this.#restSize;
    other.#length = this.#length;
    return other;
  }

  /** Appends to the bytes that do not fill a block yet. */
  #keep(bytes: Uint8Array, from: number, to: number): void {
    let at = this.#restSize;
    for (let index = from; index < to; index++) this.#rest[at++] = bytes[index] as number;
    this.#restSize = at;
  }

  /** Computes the words of the digest, with the padding after the rest. */
  #finish(): void {
    const rest = this.#rest;
    const size = this.#restSize;
    const end = size < LENGTH_OFFSET ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    rest[size] = PAD;
    rest.fill(0, size + 1, end - 8);
    const high = Math.floor(this.#length / CARRY);
    const low = (this.#length % CARRY) * 8;
    for (let at = 0; at < 4; at++) {
      rest[end - 8 + at] = high >>> (24 - 8 * at);
      rest[end - 4 + at] = low >>> (24 - 8 * at);
    }
    for (let word = 0; word < 8; word++) result[word] = this.#state[word] as number;
    hashBlocks(this.#kind, result, rest, 0, end);
  }
}

/** The words of the digest that was computed last. The caller copies them at once. */
const result = new Int32Array(8);

/**
 * SHA-1 of bytes that are given piece by piece: for transcripts and tests, not for security.
 *
 * @example
 * ```ts
 * import { Sha1 } from "@millrace/millrace/digest";
 *
 * const digest = new Sha1();
 * for (const letter of "abc") digest.update(new TextEncoder().encode(letter));
 * console.log(digest.hex()); // a9993e364706816aba3e25717850c26c9cd0d89d
 * ```
 */
export class Sha1 extends Digest {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "Sha1";

  /** Begins with no bytes. */
  constructor() {
    super(SHA1);
  }
}

/**
 * SHA-256 of bytes that are given piece by piece.
 *
 * @example
 * ```ts
 * import { Sha256 } from "@millrace/millrace/digest";
 *
 * const digest = new Sha256().update(new TextEncoder().encode("abc"));
 * console.log(digest.hex().slice(0, 16)); // ba7816bf8f01cfea
 * ```
 */
export class Sha256 extends Digest {
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "Sha256";

  /** Begins with no bytes. */
  constructor() {
    super(SHA256);
  }
}

/** The digests that `sha1` and `sha256` use, once they were called. */
let keptSha1: Sha1 | undefined;
let keptSha256: Sha256 | undefined;

/**
 * Returns the SHA-1 of some bytes: for transcripts and tests, not for security.
 *
 * @example
 * ```ts
 * import { sha1 } from "@millrace/millrace/digest";
 *
 * console.log(sha1(new TextEncoder().encode("abc"))[0]); // 169
 * ```
 *
 * @throws {TypeError} if the argument is not a `Uint8Array`
 */
export function sha1(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  keptSha1 ??= new Sha1();
  return keptSha1.reset().update(bytes).digest();
}

/**
 * Returns the SHA-256 of some bytes.
 *
 * @example
 * ```ts
 * import { sha256 } from "@millrace/millrace/digest";
 *
 * console.log(sha256(new TextEncoder().encode("abc"))[0]); // 186
 * ```
 *
 * @throws {TypeError} if the argument is not a `Uint8Array`
 */
export function sha256(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  keptSha256 ??= new Sha256();
  return keptSha256.reset().update(bytes).digest();
}

/** Makes the error for a value that is not a `Uint8Array`. */
function refusal(value: unknown): TypeError {
  const what = value === null
    ? "null"
    : typeof value === "object"
    ? `a ${value.constructor?.name ?? "value"}`
    : `a ${typeof value}`;
  const advice = typeof value === "string" ? ": new TextEncoder().encode(text) makes one" : "";
  return new TypeError(`Cannot take ${what} for a Uint8Array${advice}`);
}
