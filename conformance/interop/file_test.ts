// Both implementations in two processes, on a segment in a file: messages to the byte, whoever
// makes the file, and what each side learns when the other ends, leaves or is killed.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { AVAILABLE, Peer, Place, test, WAIT } from "../../impl-ts/src/host/host_fixture.ts";
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import {
  MillraceError,
  PeerFailedError,
  type Port,
  portGeometry,
  statsOf,
} from "../../impl-ts/src/mod.ts";
import { lastRead, readInto, writeMessage } from "../../impl-ts/src/more/raw.ts";
import { reasonValue } from "../../impl-ts/src/memory/layout.ts";
import { run } from "../../tools/run.ts";
import { faultOf, fill, Workload } from "../kit/live/workload.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** That of the other process of the TypeScript tests, which some of these use. */
const CAPACITY = 1024;
const GEOMETRY = portGeometry({ capacity: CAPACITY });
const A = { endpoint: 0 };
const B = { endpoint: 1 };

/** The other program; who says where it is has built it. */
const FILE_PEER = process.env["MILLRACE_FILE_PEER"] ?? `${ROOT}zig-out/bin/file_peer`;

if (AVAILABLE && process.env["MILLRACE_FILE_PEER"] === undefined) {
  const options = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };
  const { code, output } = await run(["zig", "build", "file-peer"], options);
  if (code !== 0) throw new Error(`zig build file-peer failed:\n${output}`);
}

/** The Zig process, once it has attached. */
class ZigPeer {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  #path = "";

  private constructor(program: ChildProcess) {
    this.#process = program;
    this.#lines = createInterface(program.stdout!)[Symbol.asyncIterator]();
    this.#ended = once(program, "close");
  }

  static async start(
    how: "create" | "seal" | "open",
    path: string,
    role: "echo" | "hold" | "leave",
    spin: number,
  ): Promise<ZigPeer> {
    const args = [how, path, role, `${CAPACITY}`, `${spin}`];
    const peer = new ZigPeer(spawn(FILE_PEER, args, { stdio: ["ignore", "pipe", "inherit"] }));
    peer.#path = (await peer.#line()).slice("attached ".length);
    return peer;
  }

  /** Where its segment is found. */
  get path(): string {
    return this.#path;
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (!done) return value;
    throw new Error(`The Zig process ended: ${await this.#ended}`);
  }

  /** How its part ended. */
  async answer(): Promise<{ code: number; parks: number }> {
    const [code, parks] = (await this.#line()).split(" ").map(Number);
    return { code: code!, parks: parks! };
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill(); // nothing, where it has ended
    await this.#ended;
  }
}

/** Writes the messages of a seed, one at a time, and compares what comes back. */
function drive(port: Port, seed: number, count: number): void {
  const outgoing = new Workload(seed, CAPACITY);
  const incoming = new Workload(seed, CAPACITY);
  const [there, back] = [new Uint8Array(outgoing.sizeMax), new Uint8Array(outgoing.sizeMax)];
  for (let index = 0; index < count; index++) {
    const message = outgoing.next();
    const payload = fill(message, there);
    writeMessage(port, { payload, codec: 0, tag: message.tag }, WAIT);
    const size = readInto(port, back, WAIT);
    assert(size !== undefined, `message ${index} did not come back`);
    assertEquals(faultOf(incoming.next(), lastRead(port).tag, back.subarray(0, size)), undefined);
  }
}

function errorOf(call: () => unknown): MillraceError {
  return assertThrows(call, MillraceError);
}

for (const spin of [50, 0]) {
  for (const creator of ["TypeScript", "Zig"]) {
    const how = spin === 0 ? "parked" : "spinning";
    test(`interop: a file made by ${creator}, echo until the end, ${how}`, async () => {
      using place = new Place();
      const { path } = place;
      const mine = creator === "TypeScript"
        ? SegmentFile.create(path, GEOMETRY, { ...A, spin })
        : undefined;
      await using peer = await ZigPeer.start(mine ? "open" : "create", path, "echo", spin);
      using file = mine ?? SegmentFile.open(path, { ...B, spin });
      using port = file.port();
      drive(port, 1 + spin, 2_000);
      if (spin === 0) assert(statsOf(port).parks > 0, "nobody slept");
      port.end();
      assertEquals([port.read(WAIT), port.ended], [undefined, true]);
      const { code, parks } = await peer.answer();
      assertEquals(code, 0);
      if (spin === 0) assert(parks > 0, "the Zig process never slept");
    });
  }
}

for (const creator of ["TypeScript", "Zig"]) {
  test(`interop: sealed memory made by ${creator}, echo until the end, and death`, async () => {
    const make = () => creator === "TypeScript" ? SegmentFile.createSealed(GEOMETRY, A) : undefined;
    {
      const mine = make();
      await using peer = await ZigPeer.start(mine ? "open" : "seal", mine?.path ?? "", "echo", 0);
      using file = mine ?? SegmentFile.open(peer.path, B);
      using port = file.port();
      drive(port, 7, 200);
      port.end();
      assertEquals([port.read(WAIT), port.ended], [undefined, true]);
      assertEquals((await peer.answer()).code, 0);
    }
    const mine = make();
    await using peer = await ZigPeer.start(mine ? "open" : "seal", mine?.path ?? "", "hold", 0);
    using file = mine ?? SegmentFile.open(peer.path, B);
    peer.kill();
    const error = errorOf(() => file.port().read(WAIT));
    assertEquals((error as PeerFailedError).reason, "peer.lost");
  });
}

test("interop: asynchronous calls meet a Zig process in a file", async () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  await using peer = await ZigPeer.start("open", place.path, "echo", 0);
  using port = file.port<number>();
  for (let index = 0; index < 200; index++) {
    await port.writeAsync(index, WAIT);
    assertEquals(await port.readAsync(WAIT), index);
  }
  await port.endAsync(WAIT);
  assertEquals((await peer.answer()).code, 0);
});

test("interop: create of one side takes the live file of the other", async () => {
  using place = new Place();
  {
    using file = SegmentFile.create(place.path, GEOMETRY, B);
    await using _peer = await ZigPeer.start("create", place.path, "echo", 50);
    drive(file.port(), 5, 20);
  }
  await using _peer = await ZigPeer.start("create", place.path, "echo", 50); // a left-over
  using file = SegmentFile.create(place.path, GEOMETRY, B);
  drive(file.port(), 6, 20);
  assertEquals(errorOf(() => SegmentFile.create(place.path, GEOMETRY, A)).code, "segment.endpoint");
  const other = portGeometry({ capacity: 256 });
  assertEquals(errorOf(() => SegmentFile.create(place.path, other, A)).code, "segment.geometry");
});

test("interop: a client of a file that is left over does not keep a new server out", async () => {
  using place = new Place();
  {
    using old = SegmentFile.create(place.path, GEOMETRY, B); // the client came first
    await using server = await ZigPeer.start("create", place.path, "hold", 0);
    server.kill();
    assertEquals((errorOf(() => old.port().read(WAIT)) as PeerFailedError).reason, "peer.lost");
    await using _next = await ZigPeer.start("create", place.path, "echo", 50);
    using file = SegmentFile.open(place.path, B);
    drive(file.port(), 8, 20);
  }
  // And a client in Zig, a server in Deno.
  const first = SegmentFile.create(place.path, GEOMETRY, A);
  await using client = await ZigPeer.start("open", place.path, "hold", 0);
  first.close();
  using second = SegmentFile.create(place.path, GEOMETRY, A);
  assertEquals((await client.answer()).code, reasonValue("peer.closed"));
  await using _echo = await ZigPeer.start("open", place.path, "echo", 50);
  drive(second.port(), 9, 20);
});

test("interop: a process that closes is found by the other", async () => {
  using place = new Place();
  const file = SegmentFile.create(place.path, GEOMETRY, A);
  await using peer = await ZigPeer.start("open", place.path, "hold", 0);
  file.close();
  assertEquals((await peer.answer()).code, reasonValue("peer.closed"));
  await using _left = await ZigPeer.start("create", place.path, "leave", 0);
  // It may have left before: the file is there, and nobody has ever had the other end.
  using late = SegmentFile.open(place.path, B);
  assertEquals(errorOf(() => late.port().read(WAIT)).code, "peer.closed");
});

for (const spin of [50, 0]) {
  test(`interop: a Zig process that is killed is found, spin ${spin}`, async () => {
    using place = new Place();
    await using peer = await ZigPeer.start("create", place.path, "hold", spin);
    using file = SegmentFile.open(place.path, { ...B, spin });
    using port = file.port();
    port.write("hello");
    peer.kill();
    const error = errorOf(() => port.read(WAIT));
    assertEquals((error as PeerFailedError).reason, "peer.lost");
  });
}

test("interop: a process of this library that is killed is found by the Zig process", async () => {
  using place = new Place();
  await using zig = await ZigPeer.start("create", place.path, "hold", 0);
  await using peer = await Peer.start({ path: place.path, creates: false, mode: "idle" });
  peer.kill();
  assertEquals((await zig.answer()).code, reasonValue("peer.lost"));
});
