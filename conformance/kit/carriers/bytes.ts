/**
 * One testee alone, on memory of its own, which the kit fills and looks at by commands.
 *
 * @module
 */

import type { Arena, Carrier, Program } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { type Link, Seat } from "../link.ts";
import { ProcessLink } from "../process_link.ts";
import { WorkerLink } from "../worker_link.ts";

/** Memory of carrier `bytes`. */
export const bytes: Carrier = {
  name: "bytes",
  kind: "bytes",
  refuses: ({ command, worker }) =>
    command === undefined && worker === undefined ? "is never alone" : undefined,
  starts: ({ command }) => command === undefined ? "worker" : "process",
  open: (programs) => Promise.resolve(new LoneArena(programs[0]!)),
  death: "peer.terminated",
};

class LoneArena implements Arena {
  readonly #seat: Seat;

  constructor({ command, worker, first }: Program) {
    const start = (): Link =>
      command !== undefined ? new ProcessLink(command) : new WorkerLink(worker!, first);
    this.#seat = new Seat(start);
  }

  connect(): Promise<Connection> {
    return this.#seat.take();
  }

  field(): never {
    throw new Error("memory of carrier bytes is opened by a command");
  }

  kill(): Promise<void> {
    return this.#seat.kill();
  }

  close(): Promise<void> {
    return this.#seat.kill();
  }
}
