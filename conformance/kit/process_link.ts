/**
 * A testee that is a program of its own, on standard input and output.
 *
 * @module
 */

import { Inbox, type Link } from "./link.ts";
import { shown, Trouble } from "./verdict.ts";

/** Longest reply; nothing that is asked for comes near it. */
const LINE_SIZE_MAX = 16 << 20;
/** More lines than this at once, unasked, is a flood. */
const LINES_MAX = 64;
const NOTES_SIZE_MAX = 4096;
/** How long a killed program may take to be gone. */
const KILL_MS = 5_000;

const running = new Set<number>();

/** Kills what was started and still runs; for the kit's own end. */
export function killAll(): void {
  for (const pid of running) signal(pid);
}

/** A running program. */
export class ProcessLink implements Link {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #replies = new Inbox<string>();
  readonly #gone: Promise<void>;
  #notes = "";

  /** Starts a command line of the shell, in a process group of its own. */
  constructor(command: string, cwd?: string) {
    this.#child = new Deno.Command("sh", {
      args: ["-c", `exec ${command}`],
      ...(cwd !== undefined && { cwd }),
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      detached: true,
    }).spawn();
    running.add(this.#child.pid);
    this.#input = this.#child.stdin.getWriter();
    this.#input.closed.catch(() => {}); // the end of the program says more
    const streams = Promise.allSettled([this.#readReplies(), this.#readNotes()]);
    this.#gone = this.#end(streams);
  }

  /** The process, which leads a group of its own. */
  get pid(): number {
    return this.#child.pid;
  }

  async send(command: object): Promise<void> {
    if (this.#replies.count > 0) {
      const line = await this.#replies.take(0);
      throw new Trouble("error", `said ${shown(line)} without being asked`);
    }
    try {
      await this.#input.write(new TextEncoder().encode(JSON.stringify(command) + "\n"));
    } catch {
      // It has ended, as the reply that does not come will say.
    }
  }

  async next(timeoutMs: number): Promise<unknown> {
    const line = await this.#replies.take(timeoutMs);
    try {
      return JSON.parse(line);
    } catch {
      throw new Trouble("error", `the reply is not JSON: ${shown(line)}`);
    }
  }

  notes(): string {
    return this.#notes;
  }

  async kill(): Promise<void> {
    signal(this.#child.pid);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, KILL_MS);
    });
    await Promise.race([this.#gone, late]);
    clearTimeout(timer);
  }

  /** Waits for the end and says how it came. */
  async #end(streams: Promise<unknown>): Promise<void> {
    const status = await this.#child.status;
    // Whatever it has left running goes too; it would keep the streams open.
    signal(this.#child.pid);
    running.delete(this.#child.pid);
    await streams;
    const how = status.signal ? `by ${status.signal}` : `with exit code ${status.code}`;
    this.#replies.end(new Trouble("error", `the testee ended ${how}`));
    await this.#input.abort().catch(() => {});
  }

  async #readReplies(): Promise<void> {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let rest: string[] = [];
    let size = 0;
    try {
      for await (const bytes of this.#child.stdout) {
        const parts = decoder.decode(bytes, { stream: true }).split("\n");
        while (parts.length > 1) {
          this.#replies.add(rest.join("") + parts.shift());
          rest = [];
          size = 0;
          if (this.#replies.count > LINES_MAX) return this.#flood("lines that nobody asked for");
        }
        rest.push(parts[0]!);
        size += parts[0]!.length;
        if (size > LINE_SIZE_MAX) return this.#flood(`a line of more than ${LINE_SIZE_MAX} bytes`);
      }
      if (size > 0) {
        this.#replies.end(
          new Trouble("error", `the last reply has no end: ${shown(rest.join(""))}`),
        );
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#replies.end(new Trouble("error", "the reply is not UTF-8"));
      signal(this.#child.pid);
    }
  }

  #flood(what: string): void {
    this.#replies.end(new Trouble("error", `the testee floods its output: ${what}`));
    signal(this.#child.pid);
  }

  async #readNotes(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stderr) {
      this.#notes = (this.#notes + decoder.decode(bytes, { stream: true })).slice(-NOTES_SIZE_MAX);
    }
  }
}

function signal(group: number): void {
  try {
    Deno.kill(-group, "SIGKILL");
  } catch {
    // It is gone already.
  }
}
