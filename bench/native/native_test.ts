// Every native peer plays every scenario for a moment, so that the drivers cannot rot: an answer to
// each request, with figures that can be true. How fast is for the benchmarks to say.

import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { run } from "../../tools/run.ts";
import { type Answer, type Hello, readLines, type Request, type Result } from "../contract.ts";
import type { Scenario } from "../contract.ts";
import { CALL_PEERS, playProcesses } from "./deno_calls.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PROGRAM = `${ROOT}zig-out/bin/millrace-bench-native`;
const options = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };

if (Deno.build.os === "linux") {
  const { code, output } = await run(["zig", "build", "bench-native"], options);
  if (code !== 0) throw new Error(`zig build bench-native failed:\n${output}`);
}

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: Deno.build.os !== "linux", fn });
}

const ECHO: Scenario = {
  name: "echo",
  payload: "bytes-64",
  size: 64,
  format: "bytes",
  ends: "threads",
  wait: "spin",
  pin: "free",
  duration_ms: 5,
  warmup_ms: 1,
};

/** A driver for one test. */
class Driver {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #lines: AsyncGenerator<string>;
  #id = 0;

  constructor(command: readonly string[]) {
    const [program, ...args] = command as [string, ...string[]];
    this.#child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped" }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#lines = readLines(this.#child.stdout);
  }

  async line(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    assert(!done, "the driver has ended");
    return JSON.parse(value as string);
  }

  async ask(peer: string, scenario: Scenario): Promise<Answer> {
    const id = ++this.#id;
    const request: Request = { id, peer, scenario, repetition: 0 };
    await this.#writer.write(new TextEncoder().encode(`${JSON.stringify(request)}\n`));
    const answer = await this.line() as Answer;
    assertEquals(answer.id, id);
    return answer;
  }

  async end(): Promise<void> {
    await this.#writer.close();
    const { success } = await this.#child.status;
    await this.#lines.return(undefined);
    assert(success);
  }
}

/** What a result must have, whatever the machine is doing. */
function check(result: Result, { name, size, duration_ms }: Scenario): void {
  assert(result.count > 0);
  assert(result.elapsed_ns > 0);
  if (name !== "load") assert(result.elapsed_ns >= duration_ms * 1e6);
  if (result.bytes !== undefined) assertEquals(result.bytes, result.count * size);
  for (const histogram of [result.latency, result.waiting, result.service]) {
    if (histogram === undefined) continue;
    const total = histogram.counts.reduce((sum, count) => sum + count, 0);
    assertEquals(histogram.values.length, histogram.counts.length);
    assertEquals(histogram.values, histogram.values.toSorted((a, b) => a - b));
    // Of a burst, each is one answer to many messages.
    assert(name === "burst" ? total > 0 : total === result.count);
  }
}

const PLAYS: readonly Partial<Scenario>[] = [
  { name: "echo" },
  { name: "stream", window: 4096 },
  { name: "large", size: 1 << 20, payload: "bytes-1048576", window: 8 },
  { name: "burst", burst: 100 },
  { name: "load", rate: 20_000, service_us: 1 },
  { name: "idle", wait: "park" },
  { name: "memory" },
];

const POOL: Partial<Scenario> = { name: "pool", wait: "own", task_us: 10, window: 4 };
/** Of peers that play one scenario alone. */
const OWN_PLAYS: Readonly<Record<string, readonly Partial<Scenario>[]>> = {
  "millrace-digest": [{ name: "sha1" }],
  "millrace-pool": [POOL],
  "millrace-pool-one": [POOL],
};

test("every peer of the driver in Zig plays every scenario, or says why not", async () => {
  const driver = new Driver([PROGRAM]);
  const { driver: { name, peers } } = await driver.line() as Hello;
  assertEquals(name, "zig-native");
  const played = new Map<string, number>();
  for (const peer of peers) {
    for (const play of OWN_PLAYS[peer] ?? PLAYS) {
      for (const ends of ["threads", "processes"] as const) {
        for (const wait of ["spin", "park"] as const) {
          const scenario: Scenario = { ...ECHO, ends, wait, ...play };
          const answer = await driver.ask(peer, scenario);
          const what = `${peer}: ${JSON.stringify(scenario)}: ${JSON.stringify(answer)}`;
          if ("result" in answer) {
            check(answer.result, scenario);
            played.set(peer, (played.get(peer) ?? 0) + 1);
          } else assert("decline" in answer && answer.decline.length > 0, what);
        }
      }
    }
  }
  await driver.end();
  // Millrace does all of it, and everybody something.
  assertEquals(played.get("millrace-zig"), PLAYS.length * 4);
  assertEquals(played.get("millrace-c"), PLAYS.length * 4);
  assertEquals(peers.filter((peer) => !played.has(peer)), []);
});

test("a spinning run never sleeps, and a parked one on one core does", async () => {
  const free = new Driver([PROGRAM]);
  await free.line();
  const spun = await free.ask("millrace-zig", { ...ECHO, duration_ms: 20 });
  assert("result" in spun);
  assertEquals(spun.result.sleeps, 0);
  await free.end();
  const pinned = new Driver(["taskset", "-c", "0", PROGRAM]);
  await pinned.line();
  for (const peer of ["millrace-zig", "floor-futex"]) {
    const parked = await pinned.ask(peer, { ...ECHO, wait: "park", pin: "one-core" });
    assert("result" in parked);
    assert((parked.result.sleeps ?? 0) >= parked.result.count / 2, JSON.stringify(parked));
  }
  await pinned.end();
});

test("both sides of calls between processes play, over whatever carries them", async () => {
  Deno.env.set("MILLRACE_BENCH_ZIG", PROGRAM);
  const calls: Scenario = { ...ECHO, name: "calls", format: "json", ends: "processes", count: 10 };
  const plays: [string, Partial<Scenario>][] = [
    ["millrace-call-deno", { direction: "nested" }],
    ["millrace-call-zig", { direction: "nested", wait: "park" }],
    ["millrace-call-zig", { direction: "up" }],
    ["unix-socket-call", { direction: "up", wait: "park" }],
    ["fifo-call", { direction: "down", fresh: true, wait: "own", parts: ["1", "2-10"] }],
  ];
  assertEquals(new Set(plays.map(([peer]) => peer)), new Set(CALL_PEERS));
  for (const [peer, play] of plays) {
    const result = await playProcesses(peer, { ...calls, ...play });
    assert(result.count >= 10 && result.elapsed_ns > 0, `${peer}: ${JSON.stringify(result)}`);
    assertEquals(Object.keys(result.parts ?? {}), play.parts ?? []);
  }
});

test("a call back inside of each is two trips of a peer that only moves bytes", async () => {
  const driver = new Driver([PROGRAM]);
  await driver.line();
  const calls: Scenario = { ...ECHO, name: "calls", format: "json", wait: "park" };
  for (const [direction, trips] of [["down", 1], ["nested", 2]] as const) {
    const answer = await driver.ask("fifo", { ...calls, direction });
    assert("result" in answer, JSON.stringify(answer));
    assertEquals(answer.result.bytes, answer.result.count * calls.size * trips);
  }
  await driver.end();
});

test("what cannot be is said and not measured", async () => {
  const driver = new Driver([PROGRAM]);
  await driver.line();
  const refused: [string, Partial<Scenario>, "decline" | "error"][] = [
    ["millrace-zig", { name: "juggle" }, "decline"],
    ["millrace-zig", { format: "json", payload: "json-118", size: 118 }, "decline"],
    ["millrace-zig", { ends: "workers" }, "decline"],
    ["millrace-zig", { pin: "one-core" }, "decline"],
    ["millrace-zig", { name: "load", size: 4 }, "decline"],
    ["mutex-queue", { ends: "processes", wait: "park" }, "decline"],
    ["nobody", {}, "error"],
    ["millrace-zig", { size: 0 }, "error"],
  ];
  for (const [peer, change, how] of refused) {
    const answer = await driver.ask(peer, { ...ECHO, ...change });
    assert(how in answer, `${peer}: ${JSON.stringify(change)}: ${JSON.stringify(answer)}`);
  }
  await driver.end();
});

test("the runs leave nothing behind in /dev/shm", () => {
  const names = [...Deno.readDirSync("/dev/shm")].map((entry) => entry.name);
  const left = names.filter((name) => name.startsWith("millrace-bench-"));
  assertEquals(left.filter((name) => !isRunning(name)), []);
  return Promise.resolve();
});

/** Whether the process that made a file of this name is still there. */
function isRunning(name: string): boolean {
  const pid = name.split("-")[2] as string;
  try {
    return Deno.statSync(`/proc/${pid}`).isDirectory;
  } catch {
    return false;
  }
}
