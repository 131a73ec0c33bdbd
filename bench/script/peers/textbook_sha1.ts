/**
 * SHA-1 as FIPS 180-4 describes it, step by step and with its names, on arrays of numbers: what
 * somebody writes who has the standard beside them, and nothing to measure with.
 *
 * @module
 */
/** A text, or bytes. */
export type Message = string | ArrayLike<number>;

/** The digest of a message, in bytes. */
export function textbookSha1(message: Message): number[] {
  let H = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (const M of parse(pad(bytesOf(message)))) {
    const W: number[] = [];
    for (let t = 0; t < 80; t++) {
      W[t] = t < 16 ? M[t]! : ROTL(1, W[t - 3]! ^ W[t - 8]! ^ W[t - 14]! ^ W[t - 16]!);
    }
    let [a, b, c, d, e] = H as [number, number, number, number, number];
    for (let t = 0; t < 80; t++) {
      const T = add(ROTL(5, a), f(t, b, c, d), e, K(t), W[t]!);
      e = d;
      d = c;
      c = ROTL(30, b);
      b = a;
      a = T;
    }
    H = [a, b, c, d, e].map((word, i) => add(word, H[i]!));
  }
  return H.flatMap((word) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 0xff));
}

/** The bytes of a message: those of a text are the codes of its letters. */
function bytesOf(message: Message): number[] {
  if (typeof message !== "string") return Array.from(message);
  return Array.from(message, (letter) => letter.charCodeAt(0));
}

/** 5.1.1: a bit, zeros, and the number of bits, up to a multiple of 512 bits. */
function pad(bytes: number[]): number[] {
  const l = bytes.length * 8;
  bytes.push(0x80);
  while (bytes.length % 64 !== 56) bytes.push(0);
  for (let i = 7; i >= 0; i--) bytes.push(Math.floor(l / 256 ** i) % 256);
  return bytes;
}

/** 5.2.1: blocks of 16 words. */
function parse(bytes: number[]): number[][] {
  const blocks: number[][] = [];
  for (let i = 0; i < bytes.length; i += 64) {
    const M: number[] = [];
    for (let j = i; j < i + 64; j += 4) {
      M.push((bytes[j]! << 24) | (bytes[j + 1]! << 16) | (bytes[j + 2]! << 8) | bytes[j + 3]!);
    }
    blocks.push(M);
  }
  return blocks;
}

/** 2.2.2: the sum modulo 2^32. */
function add(...words: number[]): number {
  return words.reduce((sum, word) => (sum + word) >>> 0, 0);
}

/** 3.2: the word, rotated left. */
function ROTL(n: number, x: number): number {
  return ((x << n) | (x >>> (32 - n))) >>> 0;
}

/** 4.1.1 */
function f(t: number, x: number, y: number, z: number): number {
  if (t < 20) return (x & y) ^ (~x & z);
  if (t < 40) return x ^ y ^ z;
  if (t < 60) return (x & y) ^ (x & z) ^ (y & z);
  return x ^ y ^ z;
}

/** 4.2.1 */
function K(t: number): number {
  return [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6][Math.floor(t / 20)]!;
}
