/**
 * What distinguishes SHA-1 and SHA-256.
 *
 * @module
 */

import { sha1Blocks, sha256Blocks } from "./blocks.ts";

/** The size of a block in bytes. */
export const BLOCK_SIZE = 64;

/** Feeds the whole blocks from `from` to `to` into a state. */
export type Blocks = (state: Int32Array, bytes: Uint8Array, from: number, to: number) => void;

/** One of the two kinds of digest. */
export interface Kind {
  /** The size of the result in bytes. */
  readonly size: number;
  /** The words of the state before the first block (FIPS 180-4, 5.3). */
  readonly initial: readonly number[];
  readonly blocks: Blocks;
}

/** SHA-1. */
export const SHA1: Kind = {
  size: 20,
  initial: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0],
  blocks: sha1Blocks,
};

/** SHA-256. */
export const SHA256: Kind = {
  size: 32,
  initial: [
    0x6a09e667,
    0xbb67ae85,
    0x3c6ef372,
    0xa54ff53a,
    0x510e527f,
    0x9b05688c,
    0x1f83d9ab,
    0x5be0cd19,
  ],
  blocks: sha256Blocks,
};
