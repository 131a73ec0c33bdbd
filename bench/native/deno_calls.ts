/**
 * Calls between two processes: one in Deno, and one in Deno or in Zig, over a segment in a file; or
 * two in Deno over a Unix socket or a pair of named pipes, by the same calls over a stream. As a
 * program, this is the other side in Deno.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import { type Port, portGeometry } from "../../impl-ts/src/mod.ts";
import { type ByteTransport, openStream } from "../../impl-ts/src/stream/stream.ts";
import { readLines, type Result, type Scenario } from "../contract.ts";
import type { Report, Role } from "../script/peer.ts";
import { callingEnd } from "../script/peers/millrace_call.ts";
import { callAndLeave, isCaller } from "../script/plays/calls.ts";

const CAPACITY = 65_536;
const TIMEOUT = 20_000;
/** For as long as a run lasts: who is to spin never sleeps. */
const SPIN_US = 60_000_000;
/** Each run has processes of its own, whose code is not compiled yet. */
const WARMUPS = 20;
/** Until the other side waits: it says that it is ready a little before. */
const SETTLE_MS = 20;
/** What carries the calls of each peer. */
const CARRIERS: Readonly<Record<string, "memory" | "unix" | "fifo">> = {
  "millrace-call-deno": "memory",
  "millrace-call-zig": "memory",
  "unix-socket-call": "unix",
  "fifo-call": "fifo",
};

/** The peers that are played here. */
export const CALL_PEERS: readonly string[] = Object.keys(CARRIERS);

/** What both sides are told. */
interface Order {
  readonly peer: string;
  /** The beginning of the names of files. */
  readonly path: string;
  readonly role: Role;
  readonly scenario: Scenario;
}

/** One side, and what is to be given back with it. */
interface Side {
  readonly port: Port;
  close(): void;
}

let made = 0;

/** Starts the other side, has both play, and returns what the one that calls has measured. */
export async function playProcesses(peer: string, given: Scenario): Promise<Result> {
  const { warmup_ms } = given;
  const scenario = given.fresh ? given : { ...given, warmup_ms: WARMUPS * warmup_ms };
  const path = `/dev/shm/millrace-bench-${Deno.pid}-call-${++made}`;
  const order: Order = { peer, path, role: "a", scenario };
  const listener = await prepare(order);
  const [program, ...args] = commandOf({ ...order, role: "b" }) as [string, ...string[]];
  const child = new Deno.Command(program, { args, stdin: "null", stdout: "piped" }).spawn();
  const lines = readLines(child.stdout);
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT);
  try {
    const side = await openSide(order, listener);
    try {
      const report = await playSide(side.port, order, async () => {
        if ((await lines.next()).value !== "ready") throw new Error("The other side ended");
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      });
      const { value } = await lines.next();
      const result = isCaller("a", scenario) ? report : JSON.parse(value ?? "{}");
      const { success } = await child.status;
      if (!success) throw new Error("The other side failed");
      return { ...result, notes: ["sleeps are those of the end that calls"] } as Result;
    } finally {
      side.close();
    }
  } finally {
    clearTimeout(timer);
    listener?.close();
    for (const end of ["", "-a", "-b"]) await Deno.remove(path + end).catch(() => {});
    try {
      child.kill("SIGKILL");
    } catch { // It has ended.
    }
    await child.status;
    await lines.return(undefined).catch(() => {});
  }
}

/** Makes what must be there before the other side looks for it. */
async function prepare({ peer, path }: Order): Promise<Deno.Listener | undefined> {
  const carrier = CARRIERS[peer];
  if (carrier === "unix") return Deno.listen({ transport: "unix", path });
  if (carrier !== "fifo") return undefined;
  const args = [`${path}-a`, `${path}-b`];
  const { success } = await new Deno.Command("mkfifo", { args }).output();
  if (!success) throw new Error("Cannot make named pipes");
  return undefined;
}

/** How the other side is started. */
function commandOf(order: Order): string[] {
  const { peer, path, scenario: { direction = "down", count = 0, warmup_ms } } = order;
  if (peer !== "millrace-call-zig") {
    const program = fileURLToPath(import.meta.url);
    return [Deno.execPath(), "run", "-A", "--no-check", program, JSON.stringify(order)];
  }
  const program = Deno.env.get("MILLRACE_BENCH_ZIG");
  if (program === undefined) throw new Error("MILLRACE_BENCH_ZIG names no program");
  const words = [path, CAPACITY, spinOf(order) ?? 50, direction, count, warmup_ms];
  return [program, "calls", ...words.map(String)];
}

function spinOf({ scenario: { wait } }: Order): number | undefined {
  return wait === "own" ? undefined : wait === "spin" ? SPIN_US : 0;
}

async function openSide(order: Order, listener?: Deno.Listener): Promise<Side> {
  const { peer, path, role } = order;
  if (CARRIERS[peer] === "memory") {
    const geometry = portGeometry({ capacity: CAPACITY });
    const endpoint = role === "a" ? 1 : 0;
    const file = SegmentFile.create(path, geometry, { endpoint, spin: spinOf(order) });
    return { port: file.port(), close: () => file.close() };
  }
  const transport = await (CARRIERS[peer] === "unix" ? openUnix : openFifos)(order, listener);
  const port = await openStream(transport, { timeout: TIMEOUT });
  return { port: port as Port, close() {} };
}

async function openUnix({ path }: Order, listener?: Deno.Listener): Promise<ByteTransport> {
  return await (listener?.accept() ?? Deno.connect({ transport: "unix", path }));
}

/**
 * Each waits until the other side has opened it as well. Not by the Web Streams of the files: of a
 * named pipe they give nothing (Deno 2.9).
 */
async function openFifos({ path, role }: Order): Promise<ByteTransport> {
  const [own, other] = role === "a" ? ["-a", "-b"] : ["-b", "-a"];
  const writing = Deno.open(path + own, { write: true });
  const reading = Deno.open(path + other, { read: true });
  const [writer, reader] = await Promise.all([writing, reading]);
  return {
    read: (into) => reader.read(into),
    write: (bytes) => writer.write(bytes),
    closeWrite: () => Promise.resolve(writer.close()),
    close() {
      // A read that is under way ends when the other side closes.
      for (const file of [writer, reader]) {
        try {
          file.close();
        } catch {
          // It is closed already.
        }
      }
    },
  };
}

/** Plays one side. `ready` waits, or is told, when the side that is called is there. */
async function playSide(
  port: Port,
  { peer, role, scenario }: Order,
  ready: () => void | Promise<void>,
): Promise<Report> {
  const end = callingEnd(port, CARRIERS[peer] === "memory");
  try {
    end.serve((number) => number + 1);
    await ready();
    if (isCaller(role, scenario)) return await callAndLeave(end, scenario);
    await end.rest();
    return {};
  } finally {
    end.close();
  }
}

function say(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let rest = bytes; rest.length > 0;) rest = rest.subarray(Deno.stdout.writeSync(rest));
}

if (import.meta.main) {
  const order = JSON.parse(Deno.args[0]!) as Order;
  const { port, close } = await openSide(order);
  const report = await playSide(port, order, () => say("ready"));
  say(JSON.stringify(report));
  close();
  Deno.exit(0);
}
