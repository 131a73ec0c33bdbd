/**
 * Scripts for a reader that decodes CBOR: a value that is cut, or spread over frames, at every
 * byte, and payloads of chance.
 *
 * @module
 */

import { ATTACHED, drained, firstOf, message, part, pipe, text } from "../../reference/builder.ts";
import { VACANT, whole } from "../../reference/builder.ts";
import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Item } from "../../reference/case.ts";
import { formOfCbor } from "../../reference/cbor.ts";
import type { FramePlan } from "../../reference/encode.ts";
import { valueOf } from "../../reference/layout.ts";
import { perform } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { Random } from "../live/workload.ts";
import { type Script, Stage } from "./stage.ts";

// Values of codec `cbor`, in hexadecimal.

/** Items of every kind. */
const KINDS: readonly string[] = [
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

const CBOR = valueOf("codec", "cbor");
const CAPACITY = 8192;
/** Messages that are published at once. */
const AT_ONCE = 16;
const LOST: Item = { report: "message.codec" };
/** After every payload: what is lost costs that message alone. */
const NEXT = text("next");
const SEED = 5;
const COUNT = 240;

/** Frames that are placed together, and what is read of them. */
interface Portion {
  about: string;
  frames: FramePlan[];
  /** Nothing where any one item will do. */
  item: Item | undefined;
}

export const CBOR_SCRIPTS: Script[] = [
  script(
    "cbor_cut",
    "A value that ends at every byte but its last, and one behind which something stands.",
    ["codec.bad_cbor", "codec.cbor"],
    () => [RICH, SHARED].flatMap((hex) => cuts(fromHex(hex))),
  ),
  script(
    "cbor_parts",
    "A value in two frames, cut at every byte.",
    ["codec.cbor", "codec.bad_cbor", "frame.multipart"],
    () => [RICH, SHARED].flatMap((hex) => parts(fromHex(hex))),
  ),
  script(
    "cbor_random",
    "Values in which some bytes are others, by a seed: refused, or understood.",
    ["codec.bad_cbor", "codec.cbor", "codec.cbor_tags", "codec.cbor_shared"],
    ofChance,
  ),
];

function script(id: string, about: string, clauses: string[], make: () => Portion[]): Script {
  return {
    id: `scripted/${id}`,
    about,
    clauses,
    role: "reader",
    noun: "codec",
    mayDecline: ["values", "cbor"],
    play: (arena) => play(arena, make()),
  };
}

async function play(arena: Arena, portions: Portion[]): Promise<void> {
  const memory = pipe({ capacity: CAPACITY, states: [ATTACHED, VACANT] });
  await Stage.with(arena, "reader", memory, { kind: "decode" }, async (stage) => {
    for (let at = 0; at < portions.length; at += AT_ONCE) {
      const some = portions.slice(at, at + AT_ONCE);
      for (const { frames } of some) await stage.place(...frames, whole("next"));
      await stage.publish();
      const got = await perform({ read: true }, stage.session, stage.memory, undefined);
      const items = typeof got === "object" && "items" in got ? got.items : [];
      for (const [index, { about, item }] of some.entries()) {
        stage.step = `${about}: `;
        const must = item ?? items[2 * index] ?? LOST;
        stage.expect(drained(items.slice(2 * index, 2 * index + 2)), drained([must, NEXT]), "read");
      }
      stage.step = "";
      if (items.length > 2 * some.length) stage.expect(got, drained([]), "read behind them");
    }
  });
}

function cuts(payload: Uint8Array): Portion[] {
  const all = Array.from({ length: payload.length }, (_, size) => payload.slice(0, size));
  all.push(Uint8Array.from([...payload, 0]));
  return all.map((bytes) => ({
    about: `${bytes.length} bytes of ${payload.length}`,
    frames: [whole(bytes, { codec: CBOR })],
    item: LOST,
  }));
}

function parts(payload: Uint8Array): Portion[] {
  return Array.from({ length: payload.length }, (_, at) => ({
    about: `cut at byte ${at} of ${payload.length}`,
    frames: [
      firstOf(payload.length, payload.slice(0, at), { codec: CBOR }),
      part(payload.slice(at), { codec: CBOR }),
    ],
    item: message({ codec: CBOR, cbor: toHex(payload) }),
  }));
}

/** What a reader may have no value for, or understand in its own way. */
const FREE = /float16|regular expression|class|date|map|set|#/;

function ofChance(): Portion[] {
  const random = new Random(SEED);
  const below = (limit: number) => random.next() % limit;
  const bases = [...KINDS, RICH, SHARED].map(fromHex);
  return Array.from({ length: COUNT }, () => {
    const payload = disturbed(bases[below(bases.length)]!, bases, below);
    return {
      about: toHex(payload),
      frames: [whole(payload, { codec: CBOR })],
      item: itemOf(payload),
    };
  });
}

function itemOf(payload: Uint8Array): Item | undefined {
  try {
    if (FREE.test(formOfCbor(payload))) return undefined;
  } catch {
    return LOST;
  }
  return message({ codec: CBOR, cbor: toHex(payload) });
}

/** Heads that lead somewhere, more often than bytes of chance do. */
const HEADS = fromHex("00 18 1b 20 41 5f 61 7f 80 81 9f a1 bf c1 c2 d8 1c 1d 45 d9 f4 f8 f9 fb ff");

function disturbed(
  base: Uint8Array,
  bases: Uint8Array[],
  below: (limit: number) => number,
): Uint8Array {
  const bytes = [...base];
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(bytes.length + 1);
    const head = HEADS[below(HEADS.length)]!;
    switch (below(4)) {
      case 0:
        bytes[at] = below(256);
        break;
      case 1:
        bytes[at] = head;
        break;
      case 2:
        bytes.splice(at, below(3), head);
        break;
      case 3:
        bytes.unshift(0x82);
        bytes.push(...bases[below(bases.length)]!);
    }
  }
  return Uint8Array.from(bytes);
}
