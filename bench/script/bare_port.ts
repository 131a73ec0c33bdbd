/**
 * What a port with no library needs of its interface, for programs that start: the runner makes a
 * module of it, as large as the goal for a port's size has it.
 *
 * @module
 */
import { type BareEnds, bareEnds, bareMemory } from "./bare_text.ts";
import { PATIENCE_MS, type Role } from "./peer.ts";

const CAPACITY = 64 * 1024;

/** What the other thread gets. */
interface Handoff {
  readonly memory: SharedArrayBuffer;
}

/** One end. */
export class Port {
  readonly #memory: SharedArrayBuffer;
  readonly #ends: BareEnds;

  constructor(memory: SharedArrayBuffer, side: Role) {
    this.#memory = memory;
    this.#ends = bareEnds(memory, side, false);
  }

  static create(): Port {
    return new Port(bareMemory(CAPACITY), "a");
  }

  static from({ memory }: Handoff): Port {
    return new Port(memory, "b");
  }

  handoff(): Handoff {
    return { memory: this.#memory };
  }

  write(value: unknown): void {
    this.#ends.writer.write(JSON.stringify(value));
  }

  read(): unknown {
    return this.#ends.reader.read(PATIENCE_MS);
  }

  set onmessage(handler: (event: { data: unknown }) => void) {
    this.#ends.reader.listen((data) => handler({ data }));
  }
}
