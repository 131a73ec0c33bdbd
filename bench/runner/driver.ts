/**
 * One driver at work: a process to which lines of JSON go, and from which they come.
 *
 * @module
 */
import type { Answer, Hello, Request } from "../contract.ts";
import { readLines } from "./lines.ts";

/** How a driver is started. */
export interface DriverCommand {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const START_MS = 60_000;
/** More than a driver allows itself. */
const SLACK_MS = 60_000;
const GRACE_MS = 5_000;

/** A driver. It is started again after anything that may have left a thread blocked in it. */
export class Driver {
  readonly #start: DriverCommand;
  #child: Deno.ChildProcess | undefined;
  #lines: AsyncGenerator<string> | undefined;
  #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>> | undefined;
  #hello: Hello["driver"] | undefined;

  constructor(start: DriverCommand) {
    this.#start = start;
  }

  /** What the driver says of itself. Starts it if it does not run. */
  async hello(): Promise<Hello["driver"]> {
    if (this.#child !== undefined) return this.#hello as Hello["driver"];
    const [program, ...args] = this.#start.command as [string, ...string[]];
    const child = new Deno.Command(program, {
      args,
      env: { ...this.#start.env, NO_COLOR: "1" },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
      // Ctrl-C is for the runner, which ends its drivers itself.
      detached: true,
    }).spawn();
    this.#child = child;
    this.#writer = child.stdin.getWriter();
    this.#lines = readLines(child.stdout);
    const line = await within(this.#next(), START_MS);
    if (line === undefined) {
      await this.stop();
      throw new Error(`The driver ${this.#start.name} does not start: ${program}`);
    }
    this.#hello = (JSON.parse(line) as Hello).driver;
    return this.#hello;
  }

  /** Has one request played. Never throws: what goes wrong is the answer. */
  async ask(request: Request): Promise<Answer> {
    const { id, scenario } = request;
    try {
      await this.hello();
      const line = new TextEncoder().encode(`${JSON.stringify(request)}\n`);
      await this.#writer!.write(line);
      const ms = scenario.duration_ms + scenario.warmup_ms + SLACK_MS;
      const text = await within(this.#next(), ms);
      if (text === undefined) {
        await this.kill();
        return { id, error: `The driver said nothing for ${ms} ms, or ended` };
      }
      const answer = JSON.parse(text) as Answer;
      if (answer.id !== id) throw new Error(`The driver answered ${answer.id} in place of ${id}`);
      if ("error" in answer) await this.kill();
      return answer;
    } catch (error) {
      await this.kill();
      return { id, error: (error as Error).message };
    }
  }

  /** Lets the driver end. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    await this.#writer?.close().catch(() => {});
    if (await within(child.status, GRACE_MS) === undefined) await this.kill();
    else await this.#forget();
  }

  /** Makes the driver end, with all that it has started. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    // A browser is in a group of its own; its driver ends it when it is asked to.
    signal(child.pid, "SIGTERM");
    await within(child.status, GRACE_MS);
    signal(child.pid, "SIGKILL");
    await child.status;
    await this.#forget();
  }

  async #forget(): Promise<void> {
    const lines = this.#lines;
    await this.#writer?.abort().catch(() => {});
    this.#child = this.#lines = this.#writer = undefined;
    await lines?.return(undefined).catch(() => {});
  }

  async #next(): Promise<string | undefined> {
    const { value, done } = await this.#lines!.next();
    return done ? undefined : value as string;
  }
}

function signal(group: number, name: Deno.Signal): void {
  try {
    Deno.kill(-group, name);
  } catch (error) {
    const { NotFound, PermissionDenied } = Deno.errors;
    if (!(error instanceof NotFound || error instanceof PermissionDenied)) throw error;
  }
}

/** A promise's value, or `undefined` after so many milliseconds. */
async function within<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
