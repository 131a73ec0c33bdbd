/**
 * A part of the kit that plays cases in another program, such as a browser: where the memory is,
 * for the kit itself could not see it. It is bundled and sent there; `carriers/outpost_arena.ts` is
 * the other end.
 *
 * @module
 */

import type { Adapter } from "../../testees/server.ts";
import { toHex } from "../../reference/bytes.ts";
import type { Arena, Played, Program } from "../arena.ts";
import { liveCases, liveMailboxes } from "../live/cases.ts";
import type { Hello, Level } from "../protocol.ts";
import { Racer } from "../race/racer.ts";
import { judge } from "../runner.ts";
import { WATCHED, WATCHED_MAILBOXES } from "../scripts/mod.ts";
import { type Patience, patience } from "../scripts/windows.ts";
import { stressCases } from "../live/level.ts";
import type { KitCase } from "../verdict.ts";
import { LocalLink, WorkerLink } from "../worker_link.ts";
import { type MemoryLink, WorkerArena } from "./deno.ts";

/** What the kit asks for: a case in a place. */
export interface Order {
  /** Counts the places up; those of before are closed. */
  place: number;
  /** Address of the script of the kit's second thread. */
  racer: string;
  testees: Actor[];
  level: Level;
  id: string;
  stress?: { seed: number; seconds: number };
  /** Of the kit, whose part this is. */
  patience: Patience;
}

/** How to start a testee there. */
export interface Actor {
  /** Address of its script; without it, it is the adapter that the outpost has with it. */
  worker?: string;
  /** Members of what the worker is posted first, each with the address of its bytes. */
  first: Record<string, string>;
}

/** What goes back, as JSON. */
export interface Report {
  result: Omit<Played["result"], "got" | "must" | "saved"> & {
    got?: string;
    must?: string;
    saved?: [string, string][];
  };
  hellos: Hello[];
}

/** Nobody but a supervisor finds out that a worker is gone; here it is the kit. */
export const DEATH = "peer.terminated";

/** Plays what it is asked for, one case at a time. */
export class Outpost {
  readonly #read: (address: string) => Promise<ArrayBuffer>;
  readonly #adapter: Adapter | undefined;
  #place = 0;
  #arena: Arena | undefined;

  /** `read` gets the bytes at an address; `adapter` is a testee in this very thread. */
  constructor(read: (address: string) => Promise<ArrayBuffer>, adapter?: Adapter) {
    this.#read = read;
    this.#adapter = adapter;
  }

  /** Plays one case. Throws only what is a fault of the kit. */
  async play(order: Order): Promise<Report> {
    if (this.#arena === undefined || this.#place !== order.place) {
      await this.#arena?.close();
      this.#place = order.place;
      this.#arena = this.#open(order);
    }
    Object.assign(patience, order.patience);
    const entry = findCase(order);
    const hellos: Hello[] = [];
    const watcher = { hello: (_name: string, hello: Hello) => void hellos.push(hello) };
    const names = order.testees.map((_, index) => `${index}`);
    const { got, must, saved, ...result } = await judge(entry, names, this.#arena, watcher);
    return {
      hellos,
      result: {
        ...result,
        ...(got !== undefined && { got: toHex(got) }),
        ...(must !== undefined && { must: toHex(must) }),
        ...(saved !== undefined && { saved: [...saved] }),
      },
    };
  }

  #open({ testees, racer }: Order): Arena {
    const programs = testees.map(({ worker, first }, index): Program => ({
      name: `${index}`,
      ...(worker !== undefined && { worker: new URL(worker) }),
      ...(Object.keys(first).length > 0 && { first: () => this.#load(first) }),
    }));
    const start = () => new Worker(new URL(racer), { type: "module" });
    return new WorkerArena(programs, (program) => this.#start(program), new Racer(start));
  }

  #start({ worker, first }: Program): MemoryLink {
    if (worker !== undefined) return new WorkerLink(worker, first);
    if (this.#adapter === undefined) throw new Error("this outpost is no testee itself");
    return new LocalLink(this.#adapter);
  }

  async #load(first: Record<string, string>): Promise<object> {
    const members = Object.entries(first).map(async ([name, address]) =>
      [name, await this.#read(address)] as const
    );
    return Object.fromEntries(await Promise.all(members));
  }
}

function findCase({ level, id, stress }: Order): KitCase<Arena> {
  const found = casesOf(level, stress).find((entry) => entry.id === id);
  if (found === undefined) throw new Error(`there is no case ${id} of level ${level}`);
  return found;
}

function casesOf(level: Level, stress: Order["stress"]): KitCase<Arena>[] {
  if (level === "scripted") return WATCHED;
  if (level === "stress") return stressCases(stress!.seed, stress!.seconds, DEATH);
  return level === "mailbox" ? [...WATCHED_MAILBOXES, ...liveMailboxes(DEATH)] : liveCases(DEATH);
}
