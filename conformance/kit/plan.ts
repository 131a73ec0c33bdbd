/**
 * What is to be run: every testee at every level, and every ordered pair of them in every place.
 *
 * @module
 */

import type { Arena, Carrier, Program } from "./arena.ts";
import { crowdCases } from "./crowds/cases.ts";
import { liveCases, liveMailboxes } from "./live/cases.ts";
import { ALONE, CARRIERS } from "./programs.ts";
import type { Level } from "./protocol.ts";
import type { Group } from "./runner.ts";
import { loadStaticCases, nounOf, PROTOCOL_CASES, staticCases } from "./static_level.ts";
import { FILES } from "./scripts/files_cases.ts";
import { MAILBOXES, mailboxesOn, SCRIPTS, watchedOn } from "./scripts/mod.ts";
import { liveStreams } from "./streams/live.ts";
import { STREAMS } from "./streams/stopping.ts";
import { streamCases } from "./streams/static.ts";
import { stressCases } from "./live/level.ts";
import type { KitCase } from "./verdict.ts";

/** What somebody wants to have run. */
export interface Wish {
  programs: Program[];
  /** All but `stress`, where none is named. */
  levels: Level[];
  /** Patterns of case ids, of which one must fit; all cases where there is none. */
  cases: string[];
  /** Names of carriers; all where there is none. */
  carriers: string[];
  seed: number;
  /** For `stress`: how long each pair is worked. */
  seconds: number;
}

/** The levels that are run without being asked for. */
export const LEVELS: readonly Level[] = ["static", "scripted", "mailbox", "live"];

/** Makes the groups, in the order in which they are run. */
export function plan(wish: Wish): Group[] {
  const levels = wish.levels.length > 0 ? wish.levels : LEVELS;
  const groups: Group[] = [];
  for (const level of ["static", "scripted", "mailbox", "live", "stress"] as const) {
    if (!levels.includes(level)) continue;
    if (level !== "live" && level !== "stress") groups.push(...lone(level, wish));
    if (level !== "static" && level !== "scripted") groups.push(...pairs(level, wish));
    if (level === "live") groups.push(...crowds(wish));
  }
  return groups.filter(({ cases, empty }) => cases.length > 0 || empty !== undefined);
}

/** Groups of one testee each. */
function lone(level: Level, wish: Wish): Group[] {
  const all = loadStaticCases();
  const isMailbox = level === "mailbox";
  const some = level === "scripted"
    ? SCRIPTS
    : staticCases(all.filter(({ id }) => (nounOf(id) === "mailbox") === isMailbox));
  const first = level === "static" ? PROTOCOL_CASES : isMailbox ? MAILBOXES : [];
  const groups: Group[] = [];
  for (const program of wish.programs) {
    if (isWanted(ALONE, wish)) {
      groups.push(makeGroup(level, ALONE, [program], [...first, ...some], wish));
    }
    const watched = isMailbox ? mailboxesOn : watchedOn;
    for (const carrier of CARRIERS.filter((each) => isWanted(each, wish))) {
      if (carrier.kind === "stream") {
        const cases = isMailbox ? [] : level === "static" ? streamCases() : STREAMS;
        if (cases.length > 0) groups.push(makeGroup(level, carrier, [program], cases, wish));
        continue;
      }
      if (level === "static") continue;
      const more = !isMailbox && carrier.kind === "file" ? FILES : [];
      groups.push(makeGroup(level, carrier, [program], [...watched(carrier), ...more], wish));
    }
  }
  return groups;
}

/** Groups of two, in every order and place. */
function pairs(level: Level, wish: Wish): Group[] {
  const groups: Group[] = [];
  for (const carrier of CARRIERS.filter((each) => isWanted(each, wish))) {
    const { death } = carrier;
    if (carrier.kind === "stream" && level !== "live") continue;
    const cases = carrier.kind === "stream"
      ? liveStreams(death)
      : level === "stress"
      ? stressCases(wish.seed, wish.seconds, death)
      : level === "mailbox"
      ? liveMailboxes(death)
      : liveCases(death);
    for (const first of wish.programs) {
      for (const second of wish.programs) {
        groups.push(makeGroup(level, carrier, [first, second], cases, wish));
      }
    }
  }
  return groups;
}

/** Least readers of a crowd: one alone has nobody beside it. */
const READERS_LEAST = 2;

/** Groups of one that writes and all others there that read, in the places that take many. */
function crowds(wish: Wish): Group[] {
  const groups: Group[] = [];
  for (const carrier of CARRIERS.filter((each) => each.hasRoom && isWanted(each, wish))) {
    const all = [...wish.programs, ...(carrier.own ?? [])];
    const present = all.filter((program) => carrier.refuses(program, []) === undefined);
    for (const [at, writer] of present.entries()) {
      const others = [...present.slice(at + 1), ...present.slice(0, at)];
      while (others.length < READERS_LEAST) others.push(writer);
      const cases = crowdCases(carrier.death, 1 + others.length);
      groups.push(makeGroup("live", carrier, [writer, ...others], cases, wish));
    }
  }
  return groups;
}

function isWanted({ name }: Carrier, { carriers }: Wish): boolean {
  return carriers.length === 0 || carriers.includes(name);
}

function makeGroup(
  level: Level,
  carrier: Carrier,
  programs: Program[],
  all: KitCase<Arena>[],
  { cases: patterns }: Wish,
): Group {
  const fits = patterns.map(toPattern);
  const cases = all.filter(({ id }) =>
    fits.length === 0 || fits.some((pattern) => pattern.test(id))
  );
  const refusals = programs.map((program, index) => {
    const why = carrier.refuses(program, programs.toSpliced(index, 1));
    return why === undefined ? undefined : `${program.name} ${why}`;
  });
  const empty = refusals.find((why) => why !== undefined);
  return {
    level,
    carrier: carrier.name,
    kind: carrier.kind ?? "shared",
    testees: programs.map(({ name }) => name),
    ways: programs.map((each) => `${each.name} in ${carrier.starts?.(each) ?? carrier.name}`),
    cases,
    open: () => carrier.open(programs),
    ...(empty !== undefined && { empty }),
  };
}

/** A pattern in which `*` stands for anything. */
export function toPattern(glob: string): RegExp {
  const parts = glob.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}
