/**
 * One process of Node: testees in its worker threads, on one shared memory, and the kit's outpost
 * beside them.
 *
 * @module
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import { stopBundler } from "../../../tools/build_scripts.ts";
import { findProgram } from "../../../tools/programs.ts";
import { requiresAll } from "../../../tools/test_counts.ts";
import type { Carrier } from "../arena.ts";
import { ProcessLink } from "../process_link.ts";
import { Trouble } from "../verdict.ts";
import { type Actor, DEATH, type Order, type Report } from "./outpost.ts";
import { type Host, OutpostArena } from "./outpost_arena.ts";
import { bundle } from "./outpost_bundle.ts";

/** The pinned one; else whichever the machine has, from version 20 on. */
const PINNED = fileURLToPath(new URL("../../../.tools/bin/node", import.meta.url));
const VERSION_MIN = 20;

const program = isNode(PINNED) ? PINNED : await findOther();

/** Worker threads of one process of Node. */
export const node: Carrier = {
  name: "node",
  refuses({ worker }) {
    if (worker === undefined) return "does not run in a worker";
    // Where nothing may be skipped, its cases are run, and say what is missing.
    if (program === undefined && !requiresAll()) return `finds no Node from ${VERSION_MIN} on`;
    return undefined;
  },
  open: (programs) => Promise.resolve(new OutpostArena(host, programs)),
  death: DEATH,
  end: () => host.close(),
};

class NodeHost implements Host {
  readonly prelude = 'import "./node_worker.ts";';
  readonly actors = new Map<string, Promise<Actor>>();
  #folder: string | undefined;
  #link: ProcessLink | undefined;

  async put(name: string, content: string | Uint8Array<ArrayBuffer>): Promise<string> {
    this.#folder ??= await Deno.makeTempDir({ prefix: "millrace-kit-node-" });
    const path = `${this.#folder}/${name}`;
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    await Deno.writeFile(path, bytes);
    return pathToFileURL(path).href;
  }

  async begin(): Promise<void> {
    this.#link ??= await this.#start();
  }

  async play(order: Order, timeoutMs: number): Promise<Report> {
    const link = this.#link ??= await this.#start();
    try {
      await link.send(order);
      return await link.next(timeoutMs) as Report;
    } catch (error) {
      if (error instanceof Trouble) error.message += `; Node says: ${link.notes().trim()}`;
      throw error;
    }
  }

  async end(): Promise<void> {
    const link = this.#link;
    this.#link = undefined;
    await link?.kill();
  }

  async close(): Promise<void> {
    await this.end();
    this.actors.clear();
    if (this.#folder !== undefined) await Deno.remove(this.#folder, { recursive: true });
    this.#folder = undefined;
    await stopBundler();
  }

  async #start(): Promise<ProcessLink> {
    if (program === undefined) throw new Trouble("error", `no Node from ${VERSION_MIN} on here`);
    const script = await this.put("outpost.mjs", await bundle('import "./node_outpost.ts";'));
    return new ProcessLink(`'${program}' '${fileURLToPath(script)}'`);
  }
}

const host = new NodeHost();

async function findOther(): Promise<string | undefined> {
  const found = await findProgram(["node"], PINNED.slice(0, PINNED.lastIndexOf("/")));
  return found !== undefined && isNode(found) ? found : undefined;
}

function isNode(path: string): boolean {
  try {
    const { stdout } = new Deno.Command(path, { args: ["--version"] }).outputSync();
    return Number(/^v(\d+)/.exec(new TextDecoder().decode(stdout))?.[1] ?? 0) >= VERSION_MIN;
  } catch {
    return false;
  }
}
