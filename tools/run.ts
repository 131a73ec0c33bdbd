/**
 * Runs a command in a process group of its own, so that nothing of it outlives a timeout or Ctrl-C.
 *
 * Tests start workers, native programs and browsers; killing the first process alone would leave
 * them behind, holding the pipes that this process reads.
 *
 * @module
 */

/** How a command ended, and what it printed. */
export interface Outcome {
  /** The exit code; above 128 when a signal ended it. */
  code: number;
  timedOut: boolean;
  /** The end of what it printed on both streams, without colours. */
  output: string;
  seconds: number;
  /** What it and all that it started took of the processors; unknown where there is no /proc. */
  processorSeconds: number | undefined;
}

/** Where and how to run. */
export interface RunOptions {
  cwd: string;
  timeoutMs: number;
  /** Whether to pass on what the command prints, while it prints it. */
  echo: boolean;
}

const OUTPUT_SIZE_MAX = 1 << 18;
let shownMs = 0;

/** When the output of a command was passed on last, by `performance.now`. */
export function lastShownMs(): number {
  return shownMs;
}

const GRACE_MS = 3_000;
const groups = new Set<number>();
let ending = false;

/** Runs the command to its end or to its timeout. A command that cannot start has code 127. */
export async function run(command: string[], options: RunOptions): Promise<Outcome> {
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  const [program, ...args] = command as [string, ...string[]];
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program, {
      args,
      cwd: options.cwd,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      detached: true,
    }).spawn();
  } catch (error) {
    const output = `Cannot start ${program}: ${(error as Error).message}`;
    if (options.echo) console.error(output);
    return { code: 127, timedOut: false, output, seconds: seconds(), processorSeconds: 0 };
  }
  groups.add(child.pid);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup(child.pid);
  }, options.timeoutMs);
  const tail = new Tail();
  const streams = Promise.all([
    pass(child.stdout, tail, options.echo ? Deno.stdout : undefined),
    pass(child.stderr, tail, options.echo ? Deno.stderr : undefined),
  ]);
  const status = await child.status;
  const processorSeconds = newlyCollected();
  clearTimeout(timer);
  // Whatever the command left running goes too; it would keep the streams open.
  signalGroup(child.pid, "SIGKILL");
  groups.delete(child.pid);
  await streams;
  // The caller would take an interrupted command for a failed one, and report it.
  if (ending) await new Promise(() => {});
  const output = tail.text();
  return { code: status.code, timedOut, output, seconds: seconds(), processorSeconds };
}

/** Linux counts what children took in these, whatever its own clock's rate. */
const TICKS_PER_SECOND = 100;
let collected = 0;

/**
 * What the processors did for children since the last call, in seconds. A child, with all that it
 * waited for itself, counts in whole when it has ended: so this is what the one took that just did.
 */
function newlyCollected(): number | undefined {
  let stat: string;
  try {
    stat = Deno.readTextFileSync("/proc/self/stat");
  } catch {
    return undefined;
  }
  // After the name, which may hold anything: user and system time of the children waited for.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const before = collected;
  collected = (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
  return collected - before;
}

/**
 * Makes Ctrl-C and a polite kill end all running commands, then do what is left to do, and end this
 * process with 128 + signal.
 */
export function endOnSignals(tidyUp?: () => Promise<void>): void {
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    Deno.addSignalListener(signal, async () => {
      ending = true;
      await Promise.all([...groups].map(endGroup));
      await tidyUp?.();
      Deno.exit(code);
    });
  }
}

/** Asks the group to end, and after a grace makes it. */
async function endGroup(group: number): Promise<void> {
  signalGroup(group, "SIGTERM");
  const deadline = performance.now() + GRACE_MS;
  while (groups.has(group) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  if (groups.has(group)) signalGroup(group, "SIGKILL");
}

function signalGroup(group: number, signal: Deno.Signal): void {
  try {
    Deno.kill(-group, signal);
  } catch (error) {
    // Nobody is left in the group, which is what the signal was for. Where those that are left have
    // ended and wait to be collected, macOS says that it is not permitted.
    const { NotFound, PermissionDenied } = Deno.errors;
    if (!(error instanceof NotFound || error instanceof PermissionDenied)) throw error;
  }
}

/** Keeps the end of a text, with a bound: a test that floods its output must not fill memory. */
class Tail {
  #text = "";

  add(text: string): void {
    this.#text = (this.#text + text).slice(-OUTPUT_SIZE_MAX);
  }

  text(): string {
    // deno-lint-ignore no-control-regex
    return this.#text.replace(/\x1b\[[0-9;]*m/g, "");
  }
}

async function pass(
  from: ReadableStream<Uint8Array>,
  tail: Tail,
  to?: { write(bytes: Uint8Array): Promise<number> },
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of from) {
    tail.add(decoder.decode(bytes, { stream: true }));
    if (to !== undefined) shownMs = performance.now();
    for (let rest = bytes; to !== undefined && rest.length > 0;) {
      rest = rest.subarray(await to.write(rest));
    }
  }
}
