/**
 * Processes that map the same file. The kit maps it as well.
 *
 * @module
 */

import { sizeOf } from "../../reference/layout.ts";
import { recordAt } from "../../reference/encode.ts";
import type { Arena, Carrier, Field, FieldPlan, Program, Slept } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { ProcessLink } from "../process_link.ts";
import { threadsOf } from "../race/processors.ts";
import type { Order } from "../race/orders.ts";
import { type Race, Racer } from "../race/racer.ts";
import { Seat } from "../link.ts";
import * as system from "../race/system.ts";

const FUTEX = 2;

/** Processes on a file, wherever the system has such locks. */
export const file: Carrier = {
  name: "file",
  kind: "file",
  refuses({ command, mapsNoFile }) {
    if (command === undefined) return "is no program of its own";
    if (mapsNoFile) return "maps no files";
    return system.hasCalls ? undefined : "needs a system with such locks: Linux";
  },
  starts: () => "process",
  open: (programs) => Promise.resolve(new FileArena(programs)),
  death: "peer.lost",
  hasRoom: true,
};

class FileArena implements Arena {
  readonly folder: string = Deno.makeTempDirSync({ dir: "/dev/shm", prefix: "millrace-kit-" });
  readonly #seats: Seat<ProcessLink>[];
  readonly #racer = new Racer();
  #fields = 0;

  constructor(programs: Program[]) {
    this.#seats = programs.map(({ command }) => new Seat(() => new ProcessLink(command!)));
  }

  connect(index: number): Promise<Connection> {
    return this.#seats[index]!.take();
  }

  threads(index: number): number[] {
    return threadsOf(this.#seats[index]!.link!.pid);
  }

  field(plan: FieldPlan): Promise<Field> {
    const path = `${this.folder}/${++this.#fields}`;
    const group = () => this.#seats[0]?.link?.pid;
    return Promise.resolve(new FileField(path, plan, this.#racer, group));
  }

  async kill(index: number): Promise<void> {
    await this.#seats[index]!.kill();
  }

  async close(): Promise<void> {
    this.#racer.end();
    for (const seat of this.#seats) await seat.kill();
    await Deno.remove(this.folder, { recursive: true });
  }
}

class FileField implements Field {
  readonly wakes = FUTEX;
  readonly #path: string;
  readonly #racer: Racer;
  /** The process group of the first testee, where it runs. */
  readonly #group: () => number | undefined;
  #fd: number | undefined;
  #mapping: system.Mapping | undefined;
  #words: Int32Array | undefined;

  constructor(
    path: string,
    { image, own = [] }: FieldPlan,
    racer: Racer,
    group: () => number | undefined,
  ) {
    this.#path = path;
    this.#racer = racer;
    this.#group = group;
    if (image === undefined) return;
    Deno.writeFileSync(path, image, { mode: 0o600 });
    this.words();
    for (const each of own) {
      const isTaken = system.lock(this.#fd!, recordAt(each), sizeOf("endpoint_record"));
      if (!isTaken) throw new Error(`cannot lock the record of endpoint ${each} in ${path}`);
    }
  }

  place() {
    return { carrier: "file", path: this.#path } as const;
  }

  mapped() {
    return { carrier: "mapped", path: this.#path } as const;
  }

  words(): Int32Array {
    if (this.#words === undefined) {
      this.#fd = system.open(this.#path);
      if (this.#fd < 0) throw new Error(`cannot open ${this.#path}`);
      const { size } = Deno.statSync(this.#path);
      this.#mapping = new system.Mapping(this.#fd, size);
      this.#words = new Int32Array(this.#mapping.buffer, 0, size >> 2);
    }
    return this.#words;
  }

  notify(index: number): number {
    return system.futexWake(this.#addressOf(index));
  }

  sleep(index: number, value: number, timeoutMs: number): Promise<Slept> {
    return system.sleepElsewhere(this.#addressOf(index), value, timeoutMs);
  }

  sleepHere(index: number, value: number, timeoutMs: number): Slept {
    return system.sleepHere(this.#addressOf(index), value, timeoutMs);
  }

  race(order: Order): Race {
    const size = this.words().byteLength;
    const group = this.#group();
    const whole = order.do === "halt" && group !== undefined
      ? { ...order, group, path: this.#path }
      : order;
    return this.#racer.race(whole, { address: this.#mapping!.address, size });
  }

  halt(): Promise<void> {
    return this.#racer.halt();
  }

  release(): void {
    this.#mapping?.release();
    if (this.#fd !== undefined && this.#fd >= 0) system.close(this.#fd);
    try {
      Deno.removeSync(this.#path);
    } catch {
      // Nobody has made it.
    }
  }

  #addressOf(index: number): bigint {
    return this.#mapping!.address + BigInt(index * 4);
  }
}
