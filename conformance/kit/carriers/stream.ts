/**
 * Processes that meet over streams of bytes; the kit stands between them, or is the other one.
 *
 * @module
 */

import type { Arena, Carrier, Program } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { ProcessLink } from "../process_link.ts";
import { Seat } from "../link.ts";

/** Streams over sockets and FIFOs, on systems that have such files. */
export const stream: Carrier = {
  name: "stream",
  kind: "stream",
  refuses({ command, hasNoStreams }) {
    if (command === undefined) return "is no program of its own";
    if (hasNoStreams) return "has no streams";
    return Deno.build.os === "windows" ? "needs a system with FIFOs" : undefined;
  },
  starts: () => "process",
  open: (programs) => Promise.resolve(new StreamArena(programs)),
  death: "peer.lost",
};

class StreamArena implements Arena {
  readonly folder: string = Deno.makeTempDirSync({ prefix: "millrace-kit-" });
  readonly #seats: Seat[];

  constructor(programs: Program[]) {
    this.#seats = programs.map(({ command }) => new Seat(() => new ProcessLink(command!)));
  }

  connect(index: number): Promise<Connection> {
    return this.#seats[index]!.take();
  }

  field(): never {
    throw new Error("there is no memory in a stream");
  }

  async kill(index: number): Promise<void> {
    await this.#seats[index]!.kill();
  }

  async close(): Promise<void> {
    for (const seat of this.#seats) await seat.kill();
    await Deno.remove(this.folder, { recursive: true });
  }
}
