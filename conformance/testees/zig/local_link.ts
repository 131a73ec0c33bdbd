/**
 * The Zig implementation in this very thread, as WebAssembly: for cases in which nobody waits long.
 *
 * @module
 */

import type { Link } from "../../kit/link.ts";
import { Trouble } from "../../kit/verdict.ts";
import { Guest, LONE_SIZE } from "./guest.ts";

const PAGE = 65_536;

/** A guest alone on its memory, which answers before `send` returns. */
export class LocalGuest implements Link {
  readonly #guest: Guest;
  #reply = "";

  /** Takes the module that `zig build testee-guest` installs. */
  constructor(module: WebAssembly.Module) {
    const pages = LONE_SIZE / PAGE;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.#guest = new Guest(module, memory, 0);
  }

  send(command: object): void {
    try {
      this.#reply = this.#guest.answer(JSON.stringify(command));
    } catch (error) {
      throw new Trouble("error", (error as Error).message);
    }
  }

  next(): Promise<unknown> {
    return Promise.resolve(JSON.parse(this.#reply));
  }

  notes(): string {
    return "";
  }

  kill(): Promise<void> {
    return Promise.resolve();
  }
}
