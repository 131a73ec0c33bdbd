/**
 * Which drivers there are, how they are built and started, and one at work: a process to which
 * lines of JSON go, and from which they come.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { ENTRIES } from "../../tools/build_entries.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { findChromium } from "../../tools/chromium.ts";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";
import { buildWasm } from "../../tools/wasm_worker.ts";
import { type Answer, type Hello, readLines, type Request } from "../contract.ts";
import { sabMessagePortUrl } from "../script/deno_place.ts";
import { writeBareModules, writeNodeBundles, writeOwnPackage } from "./bundles.ts";
import { writePageBundles } from "./bundles.ts";
import { step } from "./progress.ts";
import type { PlaceName } from "./scenarios.ts";

/** The drivers of a place, or why one of them is not there. */
export interface DriverKind {
  readonly place: PlaceName;
  readonly name: string;
  /** Why it cannot be started here. */
  readonly missing?: string;
  command(heap: boolean): DriverCommand;
}

/** What was built, to be removed in the end. */
export interface Workshop {
  readonly kinds: readonly DriverKind[];
  close(): Promise<void>;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WASM = `${ROOT}zig-out/bin`;
const BUILD_MS = 20 * 60_000;
/** A nursery in which so little is collected that the heap grows by what is allocated. */
const HEAP_FLAGS = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];

/** Builds the drivers of these places. */
export async function openWorkshop(
  places: ReadonlySet<PlaceName>,
  sabMessagePort: string | undefined,
): Promise<Workshop> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-bench-" });
  const kinds: DriverKind[] = [];
  try {
    const own = `${folder}/package`;
    const env = { ...sabEnvironment(sabMessagePort), MILLRACE_BENCH_PACKAGE: own };
    if (["deno", "node", "chromium"].some((place) => places.has(place as PlaceName))) {
      await step("Building the WebAssembly", async () => {
        await buildWasm("demo", "demo_worker");
        await buildWasm("wasm", "millrace");
      });
      await writeOwnPackage(own);
      await writeBareModules(own);
    }
    if (places.has("deno")) kinds.push(await denoKind(own, env));
    if (places.has("node")) kinds.push(await nodeKind(`${folder}/node`, env));
    if (places.has("chromium")) kinds.push(await chromiumKind(`${folder}/page`, env));
    await stopBundler();
    if (places.has("native")) {
      kinds.push(...await step("Building the native drivers, at first in minutes", nativeKinds));
    }
  } catch (error) {
    await stopBundler();
    await Deno.remove(folder, { recursive: true });
    throw error;
  }
  return { kinds, close: () => Deno.remove(folder, { recursive: true }) };
}

/** Starts nothing yet: the driver starts with the first question. */
export function makeDriver(kind: DriverKind, pinned: boolean, heap: boolean): Driver {
  const { command, ...rest } = kind.command(heap);
  // All threads of the driver, from their start, on the first processor.
  return new Driver({ ...rest, command: pinned ? ["taskset", "-c", "0", ...command] : command });
}

function sabEnvironment(folder: string | undefined): Record<string, string> {
  if (folder === undefined) return {};
  const url = sabMessagePortUrl(folder);
  return { MILLRACE_SAB_MESSAGE_PORT: folder, MILLRACE_SAB_MESSAGE_PORT_ENTRY: url };
}

/** Deno, with the modules of our npm package in a folder in the place of our sources. */
async function denoKind(own: string, env: Record<string, string>): Promise<DriverKind> {
  const script = fileURLToPath(new URL("../script/deno_driver.ts", import.meta.url));
  const map = `${own}/import_map.json`;
  await Deno.writeTextFile(map, JSON.stringify(await importMap(own)));
  const command = (heap: boolean) => ({
    name: "deno",
    env,
    command: [
      Deno.execPath(),
      "run",
      "-A",
      "--no-check",
      `--import-map=${map}`,
      ...heap ? [`--v8-flags=${HEAP_FLAGS.join()}`] : [],
      script,
    ],
  });
  return { place: "deno", name: "deno", command };
}

/** What our programs import: what `deno.json` names, and each of our entries from the folder. */
async function importMap(own: string): Promise<{ imports: Record<string, string> }> {
  const root = `file://${ROOT}`;
  const importsOf = async (path: string): Promise<[string, string][]> =>
    Object.entries(JSON.parse(await Deno.readTextFile(ROOT + path)).imports);
  // The libraries of the package as well, which its modules import from the folder.
  const libraries = (await importsOf("impl-ts/deno.json"))
    .filter(([, address]) => address.startsWith("npm:"));
  const imports: Record<string, string> = Object.fromEntries(libraries);
  for (const [name, address] of await importsOf("deno.json")) {
    imports[name] = address.startsWith("./") ? new URL(address, root).href : address;
  }
  for (const { source, name } of ENTRIES) imports[`${root}${source}`] = `file://${own}/${name}.js`;
  return { imports };
}

async function nodeKind(folder: string, env: Record<string, string>): Promise<DriverKind> {
  const pinned = `${ROOT}.tools/bin/node`;
  const found = await Deno.stat(pinned).then(() => pinned, () => findProgram(["node"]));
  const start = { place: "node", name: "node" } as const;
  if (found === undefined) return { ...start, missing: "there is no node", command: never };
  await Deno.mkdir(folder);
  await writeNodeBundles(folder);
  const command = (heap: boolean) => ({
    name: "node",
    env: { ...env, MILLRACE_BENCH_WASM: WASM },
    command: [found, ...heap ? HEAP_FLAGS : [], `${folder}/node_driver.mjs`],
  });
  return { ...start, command };
}

async function chromiumKind(folder: string, env: Record<string, string>): Promise<DriverKind> {
  const program = await findChromium();
  const start = { place: "chromium", name: "chromium" } as const;
  if (program === undefined) return { ...start, missing: "there is no Chromium", command: never };
  await Deno.mkdir(folder);
  await writePageBundles(folder);
  const entry = env.MILLRACE_SAB_MESSAGE_PORT_ENTRY?.slice(
    `file://${env.MILLRACE_SAB_MESSAGE_PORT}/`.length,
  );
  const script = fileURLToPath(new URL("../script/chromium_driver.ts", import.meta.url));
  const command = () => ({
    name: "chromium",
    env: {
      ...env,
      ...entry === undefined ? {} : { MILLRACE_SAB_MESSAGE_PORT_ENTRY: entry },
      MILLRACE_BENCH_WASM: WASM,
      MILLRACE_BENCH_BUNDLES: folder,
      MILLRACE_CHROMIUM: program,
    },
    command: [Deno.execPath(), "run", "-A", "--no-check", script],
  });
  return { ...start, command };
}

/** Those in Zig and C beside the one in Rust: with cold caches each side takes over a minute. */
async function nativeKinds(): Promise<DriverKind[]> {
  await build(["zig", "build", "lib"]);
  const rust = rustKind();
  try {
    return [await zigKind(), await denoZigKind(), await rust];
  } finally {
    await rust; // also after an error: nothing is to go on building
  }
}

async function zigKind(): Promise<DriverKind> {
  await build(["zig", "build", "bench-native"]);
  const command = () => ({ name: "zig-native", command: [`${WASM}/millrace-bench-native`] });
  return { place: "native", name: "zig-native", command };
}

/** A process of Deno, and one in Zig or C, on one file. */
async function denoZigKind(): Promise<DriverKind> {
  const echo = `${WASM}/millrace-bench-echo-c`;
  const source = `${ROOT}impl-zig/examples/echo.c`;
  const library = [`-I${ROOT}zig-out/include`, `${ROOT}zig-out/lib/libmillrace.a`, "-lpthread"];
  await build(["zig", "cc", "-O2", source, ...library, "-o", echo]);
  const script = fileURLToPath(new URL("../native/deno_driver.ts", import.meta.url));
  const command = () => ({
    name: "deno-native",
    env: { MILLRACE_BENCH_ZIG: `${WASM}/millrace-bench-native`, MILLRACE_BENCH_C: echo },
    command: [Deno.execPath(), "run", "-A", "--no-check", script],
  });
  return { place: "native", name: "deno-native", command };
}

async function rustKind(): Promise<DriverKind> {
  const start = { place: "native", name: "rust-native" } as const;
  const missing = (why: string) => ({ ...start, missing: why, command: never });
  if (await findProgram(["cargo"]) === undefined) return missing("there is no cargo");
  const target = `${ROOT}zig-out/rust`;
  try {
    const manifest = `${ROOT}bench/native/rust/Cargo.toml`;
    // For this processor, as Zig does it by itself.
    const native = 'build.rustflags=["-Ctarget-cpu=native"]';
    const flags = ["--quiet", "--release", "--locked", "--target-dir", target, "--config", native];
    await build(["cargo", "build", ...flags, "--manifest-path", manifest]);
  } catch (error) {
    return missing((error as Error).message.split("\n")[0] as string);
  }
  const command = () => ({
    name: "rust-native",
    command: [`${target}/release/millrace-bench-rust`],
  });
  return { ...start, command };
}

async function build(command: string[]): Promise<void> {
  const { code, output } = await run(command, { cwd: ROOT, timeoutMs: BUILD_MS, echo: false });
  if (code !== 0) throw new Error(`${command.slice(0, 3).join(" ")} failed:\n${output}`);
}

function never(): never {
  throw new Error("Cannot start a driver that is missing");
}

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
