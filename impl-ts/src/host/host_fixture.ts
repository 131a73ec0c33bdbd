// Shared by the tests of this folder. They run in Deno, and as scripts in Node: see
// `impl-ts/places/host_test.ts`.

import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import process from "node:process";
import { test as nodeTest } from "node:test";
import { type Geometry, portGeometry } from "../mod.ts";

const deno = globalThis.Deno;

/** Whether the tests can run on this system. */
export const AVAILABLE: boolean = process.platform === "linux";

/** Defines a test, which is ignored where the tests cannot run. */
export const test: (name: string, run: () => void | Promise<void>) => void = !AVAILABLE
  ? deno!.test.ignore
  : deno?.test ?? nodeTest;

/** The limit of each wait of a test. */
export const WAIT = { timeout: 10_000 };

/** A port with small rings, so that messages wrap and writers wait. */
export const GEOMETRY: Geometry = portGeometry({ capacity: 1024 });

/** A path for one test. Disposing it removes the file. */
export class Place {
  readonly folder: string = fs.mkdtempSync("/dev/shm/millrace-");
  readonly path: string = `${this.folder}/segment`;

  [Symbol.dispose](): void {
    fs.rmSync(this.folder, { recursive: true });
  }
}

/** What the other process does, in the order of its arguments. */
export interface Task {
  readonly path: string;
  /**
   * Whether it creates the file, or sealed memory, as endpoint 0; or opens the path as endpoint 1.
   */
  readonly creates: boolean | "sealed";
  /**
   * `echo` writes everything back until the stream ends, and dies by SIGKILL at the text `die`;
   * `echoAsync` does so on its event loop; `idle` only blocks in a read; `unref` listens to its
   * port without keeping itself alive.
   */
  readonly mode: "echo" | "echoAsync" | "idle" | "unref";
  readonly spin?: number;
}

/**
 * The command that runs `host_peer_fixture.ts`: this Deno, or another runtime that the variable
 * names.
 */
function peerCommand(): string[] {
  const given = process.env["MILLRACE_HOST_PEER"];
  if (given !== undefined) return JSON.parse(given);
  return [
    process.execPath,
    "run",
    "--no-check",
    "--no-prompt",
    "--allow-ffi",
    "--allow-run", // to send a signal to itself
    "--allow-read=/dev/shm,/proc",
    "--allow-write=/dev/shm,/proc",
    `${import.meta.dirname}/host_peer_fixture.ts`,
  ];
}

/** The other process, after it has attached. */
export class Peer {
  /** The path of its segment. */
  readonly path: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<number>;

  private constructor(process: ChildProcess, ended: Promise<number>, path: string) {
    this.#process = process;
    this.#ended = ended;
    this.path = path;
  }

  static async start(task: Task): Promise<Peer> {
    const [program, ...args] = peerCommand();
    const process = spawn(program!, [...args, JSON.stringify(task)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise<number>((resolve) => {
      process.once("close", (code, signal) => resolve(code ?? codeOf(signal)));
    });
    // The process writes the path after it has attached.
    const path = await Promise.race([
      new Promise<string>((resolve) => process.stdout.once("data", (data) => resolve(`${data}`))),
      ended,
    ]);
    if (typeof path === "string") return new Peer(process, ended, path);
    throw new Error(`The other process failed: ${path}`);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  /**
   * Waits until it has ended. Returns its exit code, or 128 plus the number of the signal that
   * ended it.
   */
  async ended(): Promise<number> {
    const timer = setTimeout(() => this.kill(), WAIT.timeout);
    const code = await this.#ended;
    clearTimeout(timer);
    return code;
  }

  /** Ends the process in any case. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.kill(); // does nothing if it has ended
    await this.#ended;
  }
}

const SIGNALS: Readonly<Record<string, number>> = { SIGBUS: 7, SIGKILL: 9 };

function codeOf(signal: string | null): number {
  return 128 + (SIGNALS[signal ?? ""] ?? 0);
}

/** Runs as a user without special rights: if this user is root, as another one. */
export function asNobody(run: () => void): void {
  if (process.getuid!() !== 0) return run();
  const nobody = 65_534;
  setUser(nobody);
  try {
    run();
  } finally {
    setUser(0);
  }
}

/** The functions of the C library that the tests need, in Deno only. */
function openLibrary() {
  const symbols = {
    seteuid: { parameters: ["u32"], result: "i32" },
    ftruncate: { parameters: ["i32", "i64"], result: "i32" },
  } as const;
  return deno?.dlopen("libc.so.6", symbols);
}

function setUser(id: number): void {
  const library = openLibrary();
  if (library === undefined) return process.seteuid!(id);
  const answer = library.symbols.seteuid(id);
  library.close();
  if (answer !== 0) throw new Error(`Cannot become user ${id}`);
}

/** Makes the file of a descriptor empty. Returns whether the system allows that. */
export function emptyFile(fd: number): boolean {
  const library = openLibrary();
  if (library !== undefined) {
    const answer = library.symbols.ftruncate(fd, 0n);
    library.close();
    return answer === 0;
  }
  try {
    fs.ftruncateSync(fd, 0);
    return true;
  } catch {
    return false;
  }
}
