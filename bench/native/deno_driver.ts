/**
 * The driver of echoes between a process in Deno, which measures, and one in Zig or in C, which
 * answers, over a segment in a file; and of calls between Deno and Deno or Zig, see
 * `deno_calls.ts`; and of what `openssl speed` says. The programs that answer are built by
 * `zig build bench-native lib` and named by the environment: `MILLRACE_BENCH_ZIG` is the native
 * driver, `MILLRACE_BENCH_C` the example `impl-zig/examples/echo.c`.
 *
 * @module
 */
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import { type Port, portGeometry, statsOf } from "../../impl-ts/src/mod.ts";
import { findProgram } from "../../tools/programs.ts";
import type { Answer, Hello, Request, Result, Scenario } from "../contract.ts";
import { readLines, say } from "../contract.ts";
import { CALL_PEERS, playProcesses } from "./deno_calls.ts";

/** That of the example in C. */
const CAPACITY = 65_536;
const WAIT = { timeout: 10_000 };
/** For as long as a run lasts: who is to spin never sleeps. */
const SPIN_US = 60_000_000;
/** A trip is timed with others until they take this long: a clock costs some 50 ns. */
const LAP_NS = 5_000;
/** Warming up takes so many times as long when this driver plays something for the first time. */
const FIRST = 20;
const ECHOES = ["millrace-deno-zig", "millrace-deno-c"];
const OPENSSL = "openssl-speed";
const PEERS = [...ECHOES, ...CALL_PEERS, OPENSSL];

let made = 0;
const played = new Set<string>();

/** How the answering process is started. */
function commandOf(peer: string, path: string, spin: number): string[] | string {
  const name = peer === "millrace-deno-zig" ? "MILLRACE_BENCH_ZIG" : "MILLRACE_BENCH_C";
  const program = Deno.env.get(name);
  if (program === undefined) return `${name} names no program`;
  if (name === "MILLRACE_BENCH_C") return [program, "server", path, `${spin}`];
  return [program, "serve", path, "0", `${CAPACITY}`, `${spin}`];
}

async function perform({ peer, scenario }: Request): Promise<{ result: Result } | string> {
  if (peer === OPENSSL) return await playOpenssl(scenario);
  if (scenario.ends !== "processes") return "the ends of this driver are processes";
  if (CALL_PEERS.includes(peer)) {
    if (scenario.name !== "calls") return "only calls";
    return { result: await playProcesses(peer, scenario) };
  }
  if (scenario.name !== "echo") return "this driver does not play that scenario";
  if (scenario.format !== "bytes") return "to the other process all messages are bytes";
  if (scenario.size > 4096) return "the other process reads at most 4096 bytes";
  if (scenario.pin === "one-core" && scenario.wait === "spin") {
    return "two that spin on one core wait for the scheduler";
  }
  const path = `/dev/shm/millrace-bench-${Deno.pid}-${++made}`;
  const spin = scenario.wait === "spin" ? SPIN_US : 0;
  const command = commandOf(peer, path, spin);
  if (typeof command === "string") return command;
  const [program, ...args] = command as [string, ...string[]];
  const child = new Deno.Command(program, { args, stdin: "null", stdout: "null" }).spawn();
  try {
    const geometry = portGeometry({ capacity: CAPACITY });
    using file = SegmentFile.create(path, geometry, { endpoint: 1, spin });
    using port = file.port<Uint8Array>();
    const result = measure(port, scenario);
    port.end();
    const last = port.read(WAIT);
    if (last !== undefined) throw new Error("Cannot end: there is one more answer");
    const { success } = await child.status;
    if (!success) throw new Error("The other process failed");
    return { result };
  } finally {
    Deno.removeSync(path);
    try {
      child.kill("SIGKILL");
    } catch { // It has ended.
    }
  }
}

function measure(port: Port<Uint8Array>, scenario: Scenario): Result {
  const payload = new Uint8Array(scenario.size);
  let number = 0;
  const once = () => {
    payload[0] = payload[payload.length - 1] = ++number;
    port.write(payload, WAIT);
    const answer = port.read(WAIT);
    if (answer?.length !== payload.length || answer.at(-1) !== payload[0]) {
      throw new Error("The answer is that to another question");
    }
  };
  // The code of this end must be compiled, other than that of native drivers.
  const what = JSON.stringify(scenario);
  const warmMs = played.has(what) ? scenario.warmup_ms : FIRST * scenario.warmup_ms;
  played.add(what);
  const warm = performance.now();
  do once(); while (performance.now() - warm < warmMs);
  const turn = (performance.now() - warm) * 1e6 / number;
  const turns = Math.max(1, Math.min(256, Math.floor(LAP_NS / turn)));
  const laps = new Map<number, number>();
  const first = number;
  const before = statsOf(port).parks;
  const begin = performance.now();
  let at = begin;
  while (at - begin < scenario.duration_ms) {
    for (let index = 0; index < turns; index++) once();
    const then = performance.now();
    const ns = Number(((then - at) * 1e6 / turns).toPrecision(3));
    laps.set(ns, (laps.get(ns) ?? 0) + turns);
    at = then;
  }
  const count = number - first;
  const sorted = [...laps].sort(([a], [b]) => a - b);
  return {
    count,
    elapsed_ns: Math.round((at - begin) * 1e6),
    latency: {
      unit: "ns",
      values: sorted.map(([value]) => value),
      counts: sorted.map(([, times]) => times),
    },
    sleeps: statsOf(port).parks - before,
    bytes: count * scenario.size,
    notes: ["sleeps are those of the end in Deno"],
  };
}

async function answer(request: Request): Promise<Answer> {
  const { id, peer } = request;
  if (!PEERS.includes(peer)) return { id, error: "this driver has no such peer" };
  try {
    const outcome = await perform(request);
    return typeof outcome === "string" ? { id, decline: outcome } : { id, ...outcome };
  } catch (error) {
    return { id, error: String(error) };
  }
}

/** It takes no fractions. */
const SECONDS = 1;
const TIMEOUT_MS = 20_000;

/**
 * What `openssl speed` says of SHA-1, with the instructions that the processor has for it, or why
 * it says nothing.
 */
async function playOpenssl({ name, size }: Scenario): Promise<{ result: Result } | string> {
  if (name !== "sha1") return "of digests only";
  const program = await findProgram(["openssl"]);
  if (program === undefined) return "there is no openssl";
  const { success, stdout, stderr } = await new Deno.Command(program, {
    // By the clock, as all else is measured here; it would take the processor's time.
    args: ["speed", "-elapsed", "-seconds", `${SECONDS}`, "-bytes", `${size}`, "-evp", "sha1"],
    signal: AbortSignal.timeout(TIMEOUT_MS),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  // `sha1  1886263.02k`: thousands of bytes in a second.
  const thousands = /^sha1\s+([\d.]+)k$/mi.exec(new TextDecoder().decode(stdout))?.[1];
  if (thousands === undefined) throw new Error("Cannot read what openssl speed says");
  const count = Math.round(Number(thousands) * 1000 * SECONDS / size);
  return { result: { count, elapsed_ns: SECONDS * 1e9, bytes: count * size } };
}

const { deno: version } = Deno.version;
say({ driver: { name: "deno-process", version, place: "native", peers: PEERS } } satisfies Hello);
for await (const line of readLines(Deno.stdin.readable)) {
  if (line !== "") say(await answer(JSON.parse(line) as Request));
}
Deno.exit(0);
