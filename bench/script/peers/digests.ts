/**
 * Peers that take the SHA-1 of bytes on one thread: no message, no wait.
 *
 * @module
 */
import { sha1 as nobleSha1 } from "@noble/hashes/legacy.js";
import { createSHA1 } from "hash-wasm";
import { Sha1, sha1 } from "../../../impl-ts/src/digest/digest.ts";
import { Meter } from "../meter.ts";
import { lonePeer, type Order, type Peer, type Report } from "../peer.ts";
import { reportOf } from "../plays/echo.ts";

/** Returns the SHA-1 of bytes, which may be shared. */
type Hash = (bytes: Uint8Array<ArrayBufferLike>) => Uint8Array;

/**
 * A peer that takes digests. `make` prepares what it does before the first; of shared bytes, a peer
 * that does not read them gets a copy each time.
 */
function digestPeer(make: () => Hash | Promise<Hash>, copies = false): Peer {
  return lonePeer(
    ({ name }) => name === "sha1" ? undefined : "of digests only",
    async (order) => await playDigest(await make(), order, copies),
  );
}

async function playDigest(hash: Hash, { scenario }: Order, copies: boolean): Promise<Report> {
  const { size, payload } = scenario;
  const isShared = payload.startsWith("shared-");
  const bytes = new Uint8Array(isShared ? new SharedArrayBuffer(size) : new ArrayBuffer(size));
  for (let at = 0; at < size; at++) bytes[at] = at * 7 + (at >> 8);
  const copy = new Uint8Array(size);
  const given = isShared && copies ? copy : bytes;
  const meter = new Meter(scenario);
  let result: Uint8Array;
  let count = 0;
  do {
    bytes[0] = count++;
    if (given === copy) copy.set(bytes);
    result = hash(given);
  } while (meter.turn());
  // A digest that was not taken would be the fastest.
  const must = new Uint8Array(await crypto.subtle.digest("SHA-1", Uint8Array.from(bytes)));
  if (must.join() !== result.join()) throw new Error(`The SHA-1 is ${must}, and not ${result}`);
  return reportOf(meter, undefined);
}

/**
 * SHA-1 as FIPS 180-4 describes it, step by step and with its names, on arrays of numbers: what
 * somebody writes who has the standard beside them, and nothing to measure with.
 */
function textbookSha1(message: ArrayLike<number>): number[] {
  let H = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  for (const M of parse(pad(Array.from(message)))) {
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

/** The peers of this file. */
export const peers = {
  /** One digest that is reset, into one array. */
  "millrace-digest": digestPeer(() => {
    const digest = new Sha1();
    const result = new Uint8Array(digest.size);
    return (bytes) => {
      digest.reset().update(bytes).digestInto(result);
      return result;
    };
  }),
  /** One call that makes its result. */
  "millrace-digest-once": digestPeer(() => sha1),
  "textbook-sha1": digestPeer(() => (bytes) => Uint8Array.from(textbookSha1(bytes))),
  /** In JavaScript alone. */
  "noble-hashes": digestPeer(() => (bytes) => nobleSha1(bytes as Uint8Array<ArrayBuffer>)),
  /** One hasher that begins anew, which is its fastest way. */
  "hash-wasm": digestPeer(async () => {
    const hasher = await createSHA1();
    return (bytes) => {
      hasher.init();
      hasher.update(bytes);
      return hasher.digest("binary");
    };
  }),
  /** The runtime's own, which refuses shared memory: for orientation. */
  "node-crypto": digestPeer(async () => {
    const { createHash } = await import("node:crypto");
    return (bytes) => createHash("sha1").update(bytes).digest();
  }, true),
};
