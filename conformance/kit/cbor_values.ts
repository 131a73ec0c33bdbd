/**
 * Values of codec `cbor`, in hexadecimal.
 *
 * @module
 */

/** Items of every kind. */
export const KINDS: readonly string[] = [
  "1b ffffffffffffffff",
  "3b 001fffffffffffff",
  "f9 7e00",
  "f9 8000",
  "fb 3ff199999999999a",
  "c1 fb 41d452d9ec200000",
  "c3 49 010000000000000000",
  // A RangeError with a cause.
  "d8 1b 83 6a 52616e67654572726f72 62 6e6f a1 65 6361757365 d8 1b 82 65 4572726f72 60",
  "d8 40 42 01ff",
  "d8 4a 48 7fffffff 80000000",
  "d9 0102 83 01 62 6162 f6",
  "d9 0103 a2 01 61 61 61 31 d9 0102 80",
  "d9 524a 82 63 612b62 62 6769",
  "a2 63 e282ac f7 60 82 f4 f5",
  "7f 62 c3bc 61 61 ff",
  "5f 41 01 40 ff",
];
/** All of them. */
export const RICH = `${(0x80 + KINDS.length).toString(16)} ${KINDS.join(" ")}`;
/** Two objects that hold one another, one of them in three places. */
export const SHARED = "83 d8 1c a2 61 61 d8 1c 81 d8 1d 00 61 62 d8 1d 01 d8 1d 00 d8 1d 00";
