// Whatever stands in a payload, the port for TypeScript, the small port and the kit's strict reader
// accept the same and understand it alike, in bounded time. A failure names the payload; the seeds
// are fixed.

import { assert, assertEquals } from "@std/assert";
import { cbor } from "../impl-ts/src/codec/cbor.ts";
import { fromHex, toHex } from "./reference/bytes.ts";
import { formOfCbor } from "./reference/cbor.ts";
import { loadCases } from "./static/load.ts";
import { readCbor, writeCbor } from "./testees/broken/small_cbor.ts";

const ROUNDS = 20_000;
const SEED = 0x5eed;

/** A generator of numbers below 2^32, the same for the same seed (mulberry32). */
function random(seed: number): (below: number) => number {
  return (below) => {
    seed = seed + 0x6d2b79f5 | 0;
    let mixed = Math.imul(seed ^ seed >>> 15, 1 | seed);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) % below;
  };
}

/** The payloads of the cases that a reader takes. */
const sound = [...loadCases().values()].flatMap(({ expect: { results = [] } }) =>
  results.flatMap((result) =>
    typeof result === "object" && "items" in result
      ? result.items.flatMap((item) => "cbor" in item ? [fromHex(item.cbor!)] : [])
      : []
  )
).filter(({ length }) => length < 200);

/** Heads that lead somewhere, more often than bytes of chance do. */
const HEADS = fromHex(
  "00 17 18 1b 20 40 41 5f 60 61 7f 80 81 82 9f a0 a1 bf c0 c1 c2 c3 d81b d81c " +
    "d81d 00 d84045 d90102 d90103 d9524a f4 f6 f7 f97e00 fa fb ff 6161 656361757365 646e616d65 " +
    "654572726f72",
);

/** A payload that was changed in some places, or is one of chance. */
function disturbed(below: (limit: number) => number): Uint8Array {
  const base = below(8) === 0 ? new Uint8Array(0) : sound[below(sound.length)]!;
  let bytes = [...base];
  for (let changes = 1 + below(4); changes > 0; changes--) {
    const at = below(bytes.length + 1);
    const piece = [...HEADS.subarray(at % HEADS.length, at % HEADS.length + 1 + below(4))];
    const other = sound[below(sound.length)]!;
    switch (below(6)) {
      case 0:
        bytes[at] = below(256);
        break;
      case 1:
        bytes.splice(at, 0, ...piece);
        break;
      case 2:
        bytes.splice(at, 1 + below(3));
        break;
      case 3:
        bytes = [...bytes.slice(0, at), ...other.subarray(below(other.length))];
        break;
      case 4:
        bytes = [0x82, ...bytes, ...other];
        break;
      case 5:
        bytes.splice(at, 0, HEADS[below(HEADS.length)]!);
    }
  }
  return Uint8Array.from(bytes, (byte) => byte ?? 0);
}

/** The form of a payload, by whichever of the two; `undefined` where it is refused. */
function formBy(form: (payload: Uint8Array) => string, payload: Uint8Array): string | undefined {
  try {
    return form(payload);
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** What a reader's language may have no value for, or write in another way. */
const MAY_DIFFER = /float16|regular expression|class\(/;
/** A reader need not take it within itself. */
const MAY_BE_REFUSED = /#.*(?:keyed map|set)\(/;
/** The form does not say which of two equal elements is the one that others refer to. */
const MAY_MERGE = /(?:set|map)\(.*#|#.*(?:set|map)\(/;

function viaTypeScript(payload: Uint8Array): string {
  const value: unknown = cbor.decode(payload.slice());
  return value === undefined ? "undefined" : formOfCbor(cbor.encode(value));
}

Deno.test("cbor: the port and the strict reader understand whatever comes alike", () => {
  const below = random(SEED);
  let taken = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const payload = disturbed(below);
    const must = formBy(formOfCbor, payload);
    const got = formBy(viaTypeScript, payload);
    if (must !== undefined) taken++;
    if (must !== undefined && MAY_DIFFER.test(must)) continue;
    if (got === undefined && must !== undefined && MAY_BE_REFUSED.test(must)) continue;
    if (got !== undefined && must !== undefined && MAY_MERGE.test(must)) continue;
    assertEquals(got, must, toHex(payload));
  }
  assert(taken > ROUNDS / 20, `only ${taken} payloads were taken`);
});

Deno.test("cbor: the small port and the strict reader understand whatever comes alike", () => {
  const below = random(SEED + 1);
  const viaSmall = (payload: Uint8Array) => formOfCbor(writeCbor(readCbor(payload)));
  for (let round = 0; round < ROUNDS; round++) {
    const payload = disturbed(below);
    assertEquals(formBy(viaSmall, payload), formBy(formOfCbor, payload), toHex(payload));
  }
});
