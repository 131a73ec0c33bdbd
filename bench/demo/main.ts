// The main job, end to end: a file goes from a TypeScript worker to a Zig WebAssembly worker and
// back, over one port in one shared memory, both sides blocking. This thread only shows progress.

import { portGeometry, segmentSize as sizeOf } from "../../impl-ts/src/mod.ts";
import { endOnSignals } from "../../tools/run.ts";
import { compileWorker } from "./compile.ts";
import { CAPACITY, composedSource, fileSource, type Ground, type Latency } from "./protocol.ts";
import { type Note, PROGRESS, type ServeOrder, type ServeReport, type Source } from "./protocol.ts";
import type { StreamOrder, StreamReport, Transfer } from "./protocol.ts";
import { type Arguments, bytes, microseconds, ProgressBar, readArguments } from "./terminal.ts";
import { showStep, table, USAGE, UsageError } from "./terminal.ts";

const root = new URL("../../", import.meta.url);
const DEFAULT_SIZE = 16_000_000;
const PAGE = 65_536;
/** Memory of the Zig worker below the segment: stack, and two messages of the largest size. */
const WORKER_PAGES = 64;

if (import.meta.main) {
  // Leaving is also what ends the workers: a blocked one answers to nothing else.
  endOnSignals();
  Deno.exit(await demo(Deno.args));
}

/** Runs the demo and returns its exit code. */
async function demo(args: readonly string[]): Promise<number> {
  try {
    const wanted = readArguments(args);
    if (wanted.help) {
      console.log(USAGE);
      return 0;
    }
    if (wanted.page !== undefined) {
      // It stands on packages, which Deno would fetch for the stream too if it saw the name here.
      const page = new URL("./page.ts", import.meta.url).href;
      return await (await import(page)).showPages(wanted.page);
    }
    const source = openSource(wanted);
    showStep("Compiling the Zig worker (about ten seconds, the first time) ...");
    const module = new WebAssembly.Module(await Deno.readFile(await compileWorker()));
    return show(await stream(source, module, wanted.corrupt), source);
  } catch (error) {
    console.error(`demo: ${(error as Error).message}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function openSource({ path }: Arguments): Source {
  if (path === undefined) return composedSource(root, DEFAULT_SIZE);
  try {
    return fileSource(path);
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`);
  }
}

/** Starts both workers on one memory and waits for their reports, drawing the bar meanwhile. */
async function stream(
  source: Source,
  module: WebAssembly.Module,
  corrupt: number,
): Promise<[StreamReport, ServeReport]> {
  const segmentSize = sizeOf(portGeometry({ capacity: CAPACITY }));
  const pages = WORKER_PAGES + Math.ceil(segmentSize / PAGE);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const ground = { memory, segmentOffset: WORKER_PAGES * PAGE, segmentSize };
  const { port1, port2 } = new MessageChannel();
  const progress = new SharedArrayBuffer(4 * PROGRESS.count);
  const serve: ServeOrder = { ...ground, module, rival: port2 };
  const order: StreamOrder = { ...ground, source, corrupt, progress, rival: port1 };

  const size = source.kind === "file" ? source.size : source.bytes.length;
  const timer = watch(new Int32Array(progress), size);
  try {
    return await Promise.all([
      startWorker<StreamReport>("./stream_worker.ts", order),
      startWorker<ServeReport>("./zig_worker.ts", serve),
    ]);
  } finally {
    clearInterval(timer);
  }
}

/** Draws the bar while the source is under way. Returns the timer that does it. */
function watch(progress: Int32Array, size: number): ReturnType<typeof setInterval> {
  const bar = new ProgressBar("Streaming", size);
  bar.update(0);
  const timer = setInterval(() => {
    if (Atomics.load(progress, PROGRESS.streamed) === 0) {
      return bar.update(Math.min(size, (Atomics.load(progress, PROGRESS.kib) >>> 0) * 1024));
    }
    clearInterval(timer);
    bar.update(size);
    bar.finish();
    showStep("Measuring large messages and echoes, a few seconds ...");
  }, 100);
  return timer;
}

/** Starts a worker and resolves with its report; rejects when it fails. */
function startWorker<Report extends Note>(path: string, order: Ground): Promise<Report> {
  const worker = new Worker(new URL(path, import.meta.url), { type: "module" });
  worker.postMessage(order, [order.rival]);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Note>) => {
      if (data.kind !== "failed") resolve(data as Report);
      else reject(data.usage ? new UsageError(data.message) : new Error(data.message));
    };
    worker.onerror = (event) => reject(new Error(`${path}: ${event.message}`));
  });
}

/** Prints the table and returns the exit code that the digests give. */
function show([ts, zig]: [StreamReport, ServeReport], source: Source): number {
  const equal = ts.sentDigest === ts.receivedDigest;
  const what = source.kind === "file" ? source.path : source.name;
  console.log(`\nTypeScript worker -> Zig worker -> TypeScript worker: ${what}\n`);
  console.log(table([
    ["sent SHA-256", ts.sentDigest],
    ["came back", ts.receivedDigest],
    ["messages", `${ts.stream.messages}, ${bytes(ts.stream.bytes)}`],
    ["there and back, hashed at both ends", rate(ts.stream)],
    ["wakes made, elided", `${ts.wakes + zig.wakes}, ${ts.wakesElided + zig.wakesElided}`],
    ["sleeps of the TypeScript worker", `${ts.parks}`],
    ["1 MiB messages, TypeScript to Zig", rate(ts.toZig)],
    ["1 MiB messages, Zig to TypeScript", rate(ts.fromZig)],
    ["118-byte JSON echo, Millrace", latency(ts.echo)],
    ["118-byte JSON echo, MessagePort", latency(ts.rivalEcho)],
    ["MessagePort / Millrace, p50", `${(ts.rivalEcho.p50 / ts.echo.p50).toFixed(1)} x`],
  ]));
  console.log(equal ? "\nThe digests are equal." : "\nTHE DIGESTS DIFFER.");
  return equal ? 0 : 1;
}

function rate({ bytes, ms }: Transfer): string {
  return bytes === 0 ? "-" : `${(bytes / ms / 1e3).toFixed(0)} MB/s`;
}

function latency({ p50, p99 }: Latency): string {
  return `p50 ${microseconds(p50)}, p99 ${microseconds(p99)}`;
}
