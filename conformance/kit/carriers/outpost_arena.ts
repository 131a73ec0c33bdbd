/**
 * The kit's side of an outpost: an arena that sends cases to another program, where they are
 * played.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { fromHex } from "../../reference/bytes.ts";
import type { Arena, Played, Program } from "../arena.ts";
import type { Level } from "../protocol.ts";
import { patience } from "../scripts/windows.ts";
import { type KitCase, Trouble } from "../verdict.ts";
import type { Actor, Order, Report } from "./outpost.ts";
import { bundle } from "./outpost_bundle.ts";

/** What a case may take; the outpost bounds each step of it far below that. */
const CASE_MS = 180_000;

/** A program with an outpost in it, which is started when it is first needed. */
export interface Host {
  /** What a worker's script needs in front of it there. */
  readonly prelude: string;
  /** The testees whose files are there already: scripts take seconds to be bundled. */
  readonly actors: Map<string, Promise<Actor>>;
  /** Puts a file where the outpost can read it, and returns its address. */
  put(name: string, content: string | Uint8Array<ArrayBuffer>): Promise<string>;
  /** Starts the program, if it does not run. Throws `Trouble` where it will not. */
  begin(): Promise<void>;
  /** Throws `Trouble` where the program breaks down. */
  play(order: Order, timeoutMs: number): Promise<Report>;
  /** Ends the program; the next order starts it again. */
  end(): Promise<void>;
}

/** Counts all arenas of all hosts. */
let places = 0;

/** Testees in one program, and the kit's outpost beside them. */
export class OutpostArena implements Arena {
  readonly #host: Host;
  readonly #programs: Program[];
  #place: number = ++places;

  constructor(host: Host, programs: Program[]) {
    this.#host = host;
    this.#programs = programs;
  }

  connect(): never {
    throw new Error("the testees are in another program");
  }

  field(): never {
    throw new Error("the memory is in another program");
  }

  async begin(): Promise<void> {
    try {
      await this.#actors();
      await this.#host.begin();
    } catch (error) {
      if (!(error instanceof Trouble)) throw error; // each case will say it
    }
  }

  async #actors(): Promise<Actor[]> {
    const actors: Actor[] = [];
    for (const program of this.#programs) actors.push(await actorOf(this.#host, program));
    return actors;
  }

  async play({ id, stress }: KitCase<Arena>, level: Level): Promise<Played> {
    const testees = await this.#actors();
    const racer = await racerOf(this.#host);
    const order: Order = {
      place: this.#place,
      racer,
      testees,
      level,
      id,
      ...(stress && { stress }),
      patience,
    };
    const timeoutMs = CASE_MS + 1000 * (stress?.seconds ?? 0);
    const { result, hellos } = await this.#host.play(order, timeoutMs);
    const { got, must, saved, ...rest } = result;
    return {
      hellos,
      result: {
        ...rest,
        ...(got !== undefined && { got: fromHex(got) }),
        ...(must !== undefined && { must: fromHex(must) }),
        ...(saved !== undefined && { saved: new Map(saved) }),
      },
    };
  }

  /** Ends all of them: the outpost ends single ones by itself. */
  async kill(): Promise<void> {
    await this.#host.end();
  }

  close(): Promise<void> {
    this.#place = ++places;
    return Promise.resolve();
  }
}

/** Puts the script of the kit's second thread there, once. */
async function racerOf(host: Host): Promise<string> {
  const name = "racer.mjs";
  let actor = host.actors.get(name);
  if (actor === undefined) {
    const program = { name: "racer", worker: new URL("../race/racer_worker.ts", import.meta.url) };
    host.actors.set(name, actor = makeActor(host, program));
  }
  return (await actor).worker!;
}

/** Puts a program's script and files there, once. */
function actorOf(host: Host, program: Program): Promise<Actor> {
  let actor = host.actors.get(program.name);
  if (actor === undefined) host.actors.set(program.name, actor = makeActor(host, program));
  return actor;
}

async function makeActor(host: Host, { name, worker, first }: Program): Promise<Actor> {
  if (worker === undefined) return { first: {} };
  const text = await bundle(`${host.prelude} import ${JSON.stringify(fileURLToPath(worker))};`);
  const files: Record<string, string> = {};
  for (const [member, content] of Object.entries(await first?.() ?? {})) {
    if (!(content instanceof ArrayBuffer)) throw new TypeError(`${member} is not an ArrayBuffer`);
    files[member] = await host.put(`${name}_${member}`, new Uint8Array(content));
  }
  return { worker: await host.put(`${name}.mjs`, text), first: files };
}
