/**
 * What a script of streams is, and what several of them use.
 *
 * @module
 */

import type { Item, MessageCase } from "../../reference/case.ts";
import type { Arena } from "../arena.ts";
import type { Hello, TransportKind } from "../protocol.ts";
import { played } from "../scripts/stage.ts";
import type { KitCase } from "../verdict.ts";
import { Random } from "../workload.ts";
import { bytes, chunks, END, HI, message, text } from "../../stream/builder.ts";
import { lacksStreams } from "./static.ts";

/** A script, as it is written down. */
export interface StreamScript {
  id: string;
  about: string;
  clauses: string[];
  /** What carries it, where that matters. */
  transport?: TransportKind;
  /** Why else a testee need not play it. */
  declinedBy?(hello: Hello): string | undefined;
  /** Plays it, or says why the kit cannot here. */
  play(arena: Arena): Promise<string | void>;
}

/** A script, of these clauses, separated by spaces. */
export function streamScript(
  id: string,
  about: string,
  clauses: string,
  play: StreamScript["play"],
  more: Partial<StreamScript> = {},
): StreamScript {
  return { id: `scripted/stream_${id}`, about, clauses: clauses.split(" "), play, ...more };
}

export function streamCase(script: StreamScript): KitCase<Arena> {
  const { id, about, clauses, transport, declinedBy, play } = script;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) =>
      lacksStreams(hello) ?? (transport && lacksTransport(hello, transport)) ??
        declinedBy?.(hello),
    run: async (arena) => played(await play(arena)),
  };
}

/** Why a testee need not do what takes a transport. */
export function lacksTransport(hello: Hello, kind: TransportKind): string | undefined {
  return hello.streams?.transports.includes(kind) ? undefined : `has no transport ${kind}`;
}

/** Whether sweeps go to every place, and not only to some of a seed. */
export function isAll(): boolean {
  return Deno.env.get("MILLRACE_TEST_ALL") === "1";
}

/** Places below `count`: all of them where that is wanted, otherwise so many of a seed. */
export function places(count: number, some: number, seed: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index);
  if (isAll() || some >= count) return all;
  const random = new Random(seed);
  const found = new Set([0, count - 1]);
  while (found.size < some) found.add(random.next() % count);
  return all.filter((each) => found.has(each));
}

/** A part of what the kit sends, and what the testee can read when all of it has come. */
export interface Part {
  hex: string;
  items: Item[];
  ends?: true;
}

const [FIRST, MIDDLE, LAST] = chunks(40, 20, 6);
/** Messages of one frame and of several, an extension between them, and the end. */
export const TRACK: readonly Part[] = [
  { hex: text("hi", 5), items: [HI] },
  { hex: FIRST!, items: [] },
  { hex: MIDDLE!, items: [] },
  { hex: LAST!, items: [message({ count: 66 })] },
  { hex: bytes(0, 9), items: [message({ tag: 9, count: 0 })] },
  { hex: bytes(20, 7), items: [message({ tag: 7, count: 20 })] },
  { hex: END, items: [], ends: true },
];

/** Bytes of a part. */
export function sizeOfPart({ hex }: Part): number {
  return hex.replaceAll(" ", "").length / 2;
}

/** What can be read when so many bytes of a track have come, and whether it has ended. */
export function readBefore(size: number, track: readonly Part[] = TRACK) {
  const items: Item[] = [];
  let at = 0;
  for (const part of track) {
    at += sizeOfPart(part);
    if (at > size) break;
    items.push(...part.items);
    if (part.ends) return { items, hasEnded: true };
  }
  return { items, hasEnded: false };
}

/** A message of bytes that count up from its number on, written and read. */
export function numbered(index: number, size: number): MessageCase {
  const payload = Array.from({ length: size }, (_, at) => (index + at) & 255);
  const hex = payload.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  return message({ hex });
}
