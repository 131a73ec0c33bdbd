// What the tests of this folder share, and the other process of those that take one.

import { type Geometry, type Port, portGeometry } from "../mod.ts";
import { SegmentFile } from "./mod.ts";

/** Whether this system has what the tests take. */
export const AVAILABLE: boolean = Deno.build.os === "linux";

/** `Deno.test`, where they can run. */
export const test: (name: string, run: () => void | Promise<void>) => void = AVAILABLE
  ? Deno.test
  : Deno.test.ignore;

/** Bounds each wait of a test. */
export const WAIT = { timeout: 10_000 };

/** A port of small rings, so that messages wrap and writers wait. */
export const GEOMETRY: Geometry = portGeometry({ capacity: 1024 });

/** A path of the test's own, and its end: nothing is left there. */
export class Place {
  readonly folder: string = Deno.makeTempDirSync({ dir: "/dev/shm", prefix: "millrace-" });
  readonly path: string = `${this.folder}/segment`;

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

/** What the other process does, in the order of its arguments. */
export interface Task {
  readonly path: string;
  /** Whether it makes the file or sealed memory, as endpoint 0, or opens it, as endpoint 1. */
  readonly creates: boolean | "sealed";
  /**
   * `echo` writes everything back until the stream ends, and dies by SIGKILL at the text `die`;
   * `echoAsync` does so on its event loop; `idle` only blocks in a read; `unref` listens to its
   * port without keeping itself alive.
   */
  readonly mode: "echo" | "echoAsync" | "idle" | "unref";
  readonly spin?: number;
}

/** The other process, once it has attached. */
export class Peer {
  /** The path of its segment. */
  readonly path: string;
  readonly #process: Deno.ChildProcess;

  private constructor(process: Deno.ChildProcess, path: string) {
    this.#process = process;
    this.path = path;
  }

  static async start(task: Task): Promise<Peer> {
    const process = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--no-check",
        "--no-prompt",
        "--allow-ffi",
        "--allow-run", // for the signal to itself
        "--allow-read=/dev/shm,/proc",
        "--allow-write=/dev/shm,/proc",
        import.meta.filename!,
        JSON.stringify(task),
      ],
      stdin: "null",
      stdout: "piped",
    }).spawn();
    const reader = process.stdout.getReader();
    const { done, value } = await reader.read(); // it says the path when it has attached
    reader.releaseLock();
    if (!done) return new Peer(process, new TextDecoder().decode(value));
    throw new Error(`The other process failed: ${JSON.stringify(await process.status)}`);
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  /** Its exit code, once it has ended. */
  async ended(): Promise<number> {
    const timer = setTimeout(() => this.kill(), WAIT.timeout);
    const { code } = await this.#process.status;
    clearTimeout(timer);
    return code;
  }

  /** Ends it in any case. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.kill();
    } catch {
      // It has ended.
    }
    await this.#process.stdout.cancel();
    await this.#process.status;
  }
}

function die(): never {
  Deno.kill(Deno.pid, "SIGKILL");
  for (;;);
}

async function main({ path, creates, mode, spin }: Task): Promise<void> {
  const options = { endpoint: creates ? 0 : 1, spin };
  const file = creates === "sealed"
    ? SegmentFile.createSealed(GEOMETRY, options)
    : creates
    ? SegmentFile.create(path, GEOMETRY, options)
    : SegmentFile.open(path, options);
  const port = file.port();
  await Deno.stdout.write(new TextEncoder().encode(file.path));
  await work(port, mode);
  // What only listens has not closed when the process ends.
  if (mode !== "unref") file.close();
}

async function work(port: Port, mode: Task["mode"]): Promise<void> {
  switch (mode) {
    case "echo":
      for (let value; (value = port.read(WAIT)) !== undefined;) {
        if (value === "die") die();
        port.write(value, WAIT);
      }
      break;
    case "echoAsync":
      for await (const value of port) {
        if (value === "die") die();
        await port.writeAsync(value, WAIT);
      }
      break;
    case "idle":
      for (;;) port.waitForPeer(WAIT), port.read(WAIT);
    case "unref":
      port.onmessage = () => {};
      port.unref();
      return await new Promise((resolve) => setTimeout(resolve, 250)); // some slices
  }
  if (!port.ended) throw new Error("the stream did not end");
  await port.endAsync(WAIT);
}

if (import.meta.main) await main(JSON.parse(Deno.args[0]!));
