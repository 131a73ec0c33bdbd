/** A codec that both sides know. */
import type { Codec } from "millrace";

/** Numbers in threes. */
export const POINTS: Codec<number[]> = {
  code: 200,
  encode(numbers) {
    if (numbers.length % 3 !== 0) throw new RangeError("A point has three numbers");
    return new Uint8Array(Float64Array.from(numbers).buffer);
  },
  decode: (payload) => [...new Float64Array(payload.buffer)],
};
