/**
 * The ways in which the Zig implementation is a testee, for the tests: each starts one, and says
 * how two of them meet.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { GuestMemory, Wasmtime } from "../../../impl-zig/wasmtime_fixture.ts";
import { findProgram } from "../../../tools/programs.ts";
import { run } from "../../../tools/run.ts";
import { Connection } from "../../kit/connection.ts";
import type { Link } from "../../kit/link.ts";
import { ProcessLink } from "../../kit/process_link.ts";
import { denoRun, quote } from "../../kit/programs.ts";
import type { Place } from "../../kit/protocol.ts";
import { WorkerLink } from "../../kit/worker_link.ts";
import { findWasmtime } from "./wasi.ts";
import type { Named } from "./guest.ts";
import { LocalGuest } from "./local_link.ts";
import { WasmtimeGuest } from "./wasmtime_guest.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = 65_536;
/** After what belongs to the guests. */
const SHARED_AT = 8 << 20;
const SHARED_SIZE = 1 << 20;

/** Testees that run, and memory that they share. */
export interface Meeting extends AsyncDisposable {
  readonly testees: readonly Connection[];
  readonly place: Place;
  /** The first bytes of the memory, as the host sees them. */
  bytes(): Uint8Array;
}

/** One way. */
export interface Shell {
  readonly name: string;
  /** Whether this machine has what it takes. */
  readonly there: boolean;
  /** Steps of build.zig. */
  readonly steps: readonly string[];
  /** One that runs alone. */
  start(): Promise<Connection>;
  /** Several on one blank memory; where they are only ever alone, nothing. */
  readonly meet?: (count: number) => Promise<Meeting>;
}

/** Runs steps of build.zig. */
export async function build(steps: readonly string[]): Promise<void> {
  const options = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };
  const { code, output } = await run(["zig", "build", ...steps], options);
  if (code !== 0) throw new Error(`zig build ${steps.join(" ")} failed:\n${output}`);
}

const built = (name: string) => `${ROOT}zig-out/${name}`;
const library = findWasmtime();
const python = await findProgram(["python3", "python"]);
const hasFiles = Deno.build.os === "linux";

const testeePy = fileURLToPath(new URL("../c_abi/testee.py", import.meta.url));
const native = quote(built("bin/testee"));
const wasi = denoRun("zig/wasi.ts", built("bin/testee_wasi.wasm"));
const c = [python ?? "", testeePy, built("lib/libmillrace.so")].map(quote).join(" ");

/** All of them. */
export const shells: readonly Shell[] = [
  processShell("a process", native, ["testee"], true, true),
  processShell("a WASI command", wasi, ["testee-wasi"], library !== undefined, false),
  {
    name: "a worker",
    there: true,
    steps: ["testee-guest"],
    start: () => Connection.start(startWorker()),
    meet: meetInWorkers,
  },
  {
    name: "a guest in this thread",
    there: true,
    steps: ["testee-guest"],
    start: async () => {
      const module = new WebAssembly.Module(await moduleBytes());
      return await Connection.start(new LocalGuest(module));
    },
  },
  {
    name: "a guest of wasmtime",
    there: library !== undefined,
    steps: ["testee-guest"],
    start: async () => (await meetUnderWasmtime(1)).testees[0]!,
    meet: meetUnderWasmtime,
  },
  processShell("its interface for C", c, ["lib"], python !== undefined && hasFiles, true),
];

function processShell(
  name: string,
  command: string,
  steps: string[],
  there: boolean,
  meets: boolean,
): Shell {
  const start = () => Connection.start(new ProcessLink(command));
  const meet = (count: number) => meetInFile(count, start);
  return { name, there, steps, start, ...(meets && hasFiles && { meet }) };
}

async function meetInFile(count: number, start: () => Promise<Connection>): Promise<Meeting> {
  const folder = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "millrace-testee-" });
  const path = `${folder}/segment`;
  const testees: Connection[] = [];
  for (let index = 0; index < count; index++) testees.push(await start());
  return {
    testees,
    place: { carrier: "file", path },
    bytes: () => Deno.readFileSync(path),
    async [Symbol.asyncDispose]() {
      for (const { link } of testees) await link.kill();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

const moduleBytes = async () => (await Deno.readFile(built("bin/testee_guest.wasm"))).buffer;

/** Starts a worker with its module. */
export function startWorker(): WorkerLink {
  const first = async () => ({ module: await moduleBytes() });
  return new WorkerLink(new URL("worker.ts", import.meta.url), first);
}

async function meetInWorkers(count: number): Promise<Meeting> {
  const links = Array.from({ length: count }, startWorker);
  const testees: Connection[] = [];
  for (const link of links) testees.push(await Connection.start(link));
  const memory = await shareMemory(links, "x");
  return {
    testees,
    place: { carrier: "shared", name: "x" },
    bytes: () => new Uint8Array(memory.buffer, SHARED_AT, SHARED_SIZE),
    async [Symbol.asyncDispose]() {
      for (const link of links) await link.kill();
    },
  };
}

/** Hands a new memory to workers under a name. */
export async function shareMemory(links: WorkerLink[], name: string): Promise<WebAssembly.Memory> {
  const initial = (SHARED_AT + SHARED_SIZE) / PAGE;
  const wasm = new WebAssembly.Memory({ initial, maximum: initial, shared: true });
  for (const [index, link] of links.entries()) await shareAgain(link, wasm, name, index);
  return wasm;
}

/** Hands over a memory that a worker may have. */
export async function shareAgain(
  link: WorkerLink,
  wasm: WebAssembly.Memory,
  name: string,
  index: number,
): Promise<void> {
  const buffer = wasm.buffer as unknown as SharedArrayBuffer;
  await link.share({ memory: name, buffer, offset: SHARED_AT, size: SHARED_SIZE, wasm, index });
}

let engine: { wasmtime: Wasmtime; module: Deno.PointerValue } | undefined;

async function startEngine() {
  const wasmtime = new Wasmtime(library!);
  return { wasmtime, module: wasmtime.compile(new Uint8Array(await moduleBytes())) };
}

async function meetUnderWasmtime(count: number): Promise<Meeting> {
  const { wasmtime, module } = engine ??= await startEngine();
  const pages = (SHARED_AT + SHARED_SIZE) / PAGE;
  const memory = new GuestMemory(wasmtime, pages, pages);
  const named = { offset: SHARED_AT, size: SHARED_SIZE };
  const testees: Connection[] = [];
  for (let index = 0; index < count; index++) {
    const guest = new WasmtimeGuest(wasmtime, module, memory, index);
    testees.push(await Connection.start(new GuestLink(guest, named)));
  }
  return {
    testees,
    place: { carrier: "shared", name: "x" },
    bytes: () => new Uint8Array(memory.buffer, SHARED_AT, SHARED_SIZE),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** A guest of this process. Every name means the same memory. */
class GuestLink implements Link {
  readonly #guest: WasmtimeGuest;
  readonly #named: Named;
  #reply: Promise<string> = Promise.resolve("");

  constructor(guest: WasmtimeGuest, named: Named) {
    this.#guest = guest;
    this.#named = named;
  }

  send(command: object): void {
    this.#reply = this.#guest.answer(JSON.stringify(command), this.#named);
    this.#reply.catch(() => {}); // `next` says it
  }

  async next(): Promise<unknown> {
    return JSON.parse(await this.#reply);
  }

  notes(): string {
    return "";
  }

  kill(): Promise<void> {
    return Promise.resolve();
  }
}
