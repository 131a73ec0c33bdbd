/**
 * What a testee of a crowd has opened.
 *
 * @module
 */

import type { Connection } from "../connection.ts";
import type { Bare, Command, Hello, Opening, Place, Ran, Task } from "../protocol.ts";
import { Wrong } from "../verdict.ts";

/** Bounds each wait of a task. */
export const TIMEOUT_MS = 10_000;

/** A testee that takes part, and its place in the arena. */
export interface Seated {
  index: number;
  connection: Connection;
}

/** One end, of one testee. */
export class End {
  readonly endpoint: number;
  readonly #connection: Connection;
  readonly #handle: number;
  readonly #who: string;

  constructor({ index, connection }: Seated, endpoint: number) {
    this.endpoint = endpoint;
    this.#connection = connection;
    this.#handle = connection.newHandle();
    this.#who = `testee ${index + 1}`;
  }

  get hello(): Hello {
    return this.#connection.hello;
  }

  async open(opening: Place & Opening): Promise<void> {
    await this.#send({ command: "open", handle: this.#handle, ...opening }, "open its end");
  }

  /** The code with which it cannot be opened, or that it was. */
  async tryOpen(opening: Place & Opening): Promise<string> {
    const command = { command: "open", handle: this.#handle, ...opening } as const;
    const reply = await this.#connection.send(command);
    return "error" in reply ? reply.error.code : "decline" in reply ? "declined" : "ok";
  }

  run(task: Task, taskMs: number): Promise<Ran> {
    const command = { command: "run", handle: this.#handle, task, timeout_ms: TIMEOUT_MS } as const;
    return this.#send(command, "run", taskMs);
  }

  /** A call that must not fail. */
  must<T = void>(name: Bare | "get"): Promise<T> {
    return this.#send({ command: name, handle: this.#handle }, name);
  }

  write(hex: string): Promise<void> {
    const message = { kind: 1, codec: 0, tag: 0, hex };
    return this.#send({ command: "write", handle: this.#handle, message }, "write");
  }

  /** May be called long before anybody waits for it: what fails until then is still told of. */
  changed(timeoutMs: number): Promise<void> {
    const command = { command: "changed", handle: this.#handle, timeout_ms: timeoutMs } as const;
    const change = this.#send<void>(command, "wait for a change", 2 * timeoutMs);
    change.catch(() => {});
    return change;
  }

  async drop(): Promise<void> {
    await this.#connection.must({ command: "drop", handle: this.#handle });
  }

  async #send<T>(command: Command, what: string, timeoutMs?: number): Promise<T> {
    const reply = await this.#connection.send(command, timeoutMs);
    if ("result" in reply) return reply.result as T;
    const why = "error" in reply ? reply.error.code : `declined: ${reply.decline}`;
    throw new Wrong(`${this.#who} cannot ${what}: ${why}`);
  }
}
