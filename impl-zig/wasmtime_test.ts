// The same `millrace.wasm` under wasmtime, where guests wake one another by the mechanism 4: guest
// with guest, guest with a JavaScript host that sees their memory; and the library as WASI.

import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { type Mechanism, Port, portGeometry, Segment } from "../impl-ts/src/mod.ts";
import { buildWasm } from "../tools/wasm_worker.ts";
import { type Argument, Guest, GuestMemory, runCommand, Wasmtime } from "./wasmtime_fixture.ts";
import { fileURLToPath } from "node:url";

const MECHANISM_WASMTIME = 4;
const DONE = 1;
const PEER_CLOSED = -64;
const CAPACITY = 4096;
/** Bounds each wait. */
const TIMEOUT: Argument = { f64: 20_000 };
const MS = 20_000;

// Where things lie, from the end of the module's data on.
const STACKS = 1 << 20;
const SEGMENT = 2 << 20;
const PORTS = 3 << 20;
const PAYLOADS = 3.5 * (1 << 20);

const library = findLibrary();
const wasmtime = library === undefined ? undefined : new Wasmtime(library);
const module = wasmtime?.compile(await buildWasm("wasm", "millrace"));

/** Where the package of the toolchain or the system has it. */
function findLibrary(): string | undefined {
  const name = Deno.build.os === "darwin" ? "libwasmtime.dylib" : "libwasmtime.so";
  const pinned = fileURLToPath(new URL(`../.tools/hosts/lib/${name}`, import.meta.url));
  return [pinned, `/usr/local/lib/${name}`, `/usr/lib/${name}`].find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}

/** Skipped where wasmtime is missing, which the gate counts as failed. */
function test(name: string, run: () => Promise<void>): void {
  // The pool thread of a call that blocks may outlive the test by a moment.
  Deno.test({ name, ignore: module === undefined, sanitizeResources: false, fn: run });
}

/** One end of a port in a guest of its own. */
class End {
  readonly guest: Guest;
  readonly #object: number;
  readonly #payload: number;
  readonly #buffer: ArrayBuffer;

  constructor(memory: GuestMemory, index: number, segmentSize: number, spin: number) {
    this.guest = new Guest(wasmtime!, module!, memory, STACKS + index * 131_072);
    this.#object = PORTS + index * 1024;
    this.#payload = PAYLOADS + index * 8192;
    this.#buffer = memory.buffer;
    const attach: Argument[] = [this.#object, SEGMENT, segmentSize, index, MECHANISM_WASMTIME];
    assertEquals(this.guest.call("millrace_port_attach", ...attach, TIMEOUT), DONE);
    assertEquals(this.guest.call("millrace_port_set_spin", this.#object, spin), DONE);
  }

  /** Blocks a thread of its own. Returns the status. */
  read(timeout = TIMEOUT): Promise<number> {
    const [place, out] = [this.#payload + 64, this.#payload];
    return this.guest.callElsewhere("millrace_port_read", this.#object, place, 4096, out, timeout);
  }

  /** The bytes of the message that was read last. */
  message(): number[] {
    const size = new DataView(this.#buffer).getUint32(this.#payload + 4, true);
    return [...new Uint8Array(this.#buffer, this.#payload + 64, size)];
  }

  write(bytes: number[]): Promise<number> {
    const place = this.#payload + 4200;
    new Uint8Array(this.#buffer).set(bytes, place);
    return this.guest
      .callElsewhere("millrace_port_write", this.#object, place, bytes.length, 0, 0, TIMEOUT);
  }

  close(): number {
    return this.guest.call("millrace_port_close", this.#object);
  }

  stats(): { wakes: number; parks: number } {
    assertEquals(this.guest.call("millrace_port_stats", this.#object, this.#payload), DONE);
    const view = new DataView(this.#buffer, this.#payload);
    const at = (offset: number) => Number(view.getBigUint64(offset, true));
    return { wakes: at(0), parks: at(16) };
  }
}

/** A memory with a blank port, both ends not yet taken. */
function makePort(): { memory: GuestMemory; size: number } {
  const memory = new GuestMemory(wasmtime!, 64, 64);
  const maker = new Guest(wasmtime!, module!, memory, STACKS + 2 * 131_072);
  const size = maker.call("millrace_segment_size", CAPACITY, CAPACITY);
  // `millrace_port_create` would take one end; this only formats.
  Segment.format(
    new Uint8Array(memory.buffer, SEGMENT, size),
    portGeometry({ capacity: CAPACITY }),
  );
  return { memory, size };
}

/** Until a reader that was started sleeps: it then has asked to be woken. */
async function untilAsleep(memory: GuestMemory, from: 0 | 1): Promise<void> {
  // The `reader_wants` of the ring that begins at that end, 256 bytes into its control area.
  const ring = SEGMENT + 128 + 2 * 128 + 2 * 64 + from * (512 + CAPACITY);
  const words = new Int32Array(memory.buffer);
  for (const end = Date.now() + MS; Atomics.load(words, (ring + 256) / 4) === 0;) {
    assert(Date.now() < end, "the reader never asked to be woken");
    await new Promise((done) => setTimeout(done, 1));
  }
}

test("two guests echo while both sleep, and wake one another", async () => {
  const { memory, size } = makePort();
  const [a, b] = [new End(memory, 0, size, 0), new End(memory, 1, size, 0)];
  for (let round = 0; round < 20; round++) {
    const asked = b.read();
    await untilAsleep(memory, 0);
    assertEquals(await a.write([round, 1]), DONE);
    assertEquals(await asked, DONE);
    assertEquals(b.message(), [round, 1]);
    const answered = a.read();
    await untilAsleep(memory, 1);
    assertEquals(await b.write([round, 2]), DONE);
    assertEquals(await answered, DONE);
    assertEquals(a.message(), [round, 2]);
  }
  for (const end of [a, b]) {
    const { wakes, parks } = end.stats();
    // Not always 20: one that looks at its slice's end needs no wake.
    assert(wakes >= 10 && wakes <= 20, `${wakes} wakes`);
    assert(parks >= 10, `${parks} sleeps`);
  }
});

test("two guests echo while both spin, and nobody is woken", async () => {
  const { memory, size } = makePort();
  const [a, b] = [new End(memory, 0, size, 10_000_000), new End(memory, 1, size, 10_000_000)];
  for (let round = 0; round < 5; round++) {
    const asked = b.read();
    assertEquals(await a.write([round]), DONE);
    assertEquals(await asked, DONE);
    const answered = a.read();
    assertEquals(await b.write(b.message()), DONE);
    assertEquals(await answered, DONE);
    assertEquals(a.message(), [round]);
  }
  for (const end of [a, b]) assertEquals(end.stats(), { wakes: 0, parks: 0 });
});

test("a guest sleeps where a notify of another instance reaches it", async () => {
  const { memory, size } = makePort();
  const [a, b] = [new End(memory, 0, size, 0), new End(memory, 1, size, 0)];
  const asked = b.read();
  await untilAsleep(memory, 0);
  const bell = SEGMENT + 128 + 128;
  // Its slices end now and then, so that one notify may find it awake.
  for (const end = Date.now() + MS; a.guest.call("millrace_notify", bell) !== 1;) {
    assert(Date.now() < end, "no notify found the sleeper");
  }
  assertEquals(await a.write([1]), DONE);
  assertEquals(await asked, DONE);
  assertEquals(a.guest.call("millrace_notify", bell), 0);
  assertEquals(a.guest.call("millrace_notify", bell + 1), -256);
  assertEquals(a.guest.call("millrace_notify", 2 ** 31), -256);
});

test("a guest that sleeps learns that its peer has closed", async () => {
  const { memory, size } = makePort();
  const [a, b] = [new End(memory, 0, size, 0), new End(memory, 1, size, 0)];
  const waiting = b.read({ f64: Infinity });
  await untilAsleep(memory, 0);
  assertEquals(a.close(), DONE);
  assertEquals(await waiting, PEER_CLOSED);
});

for (const rings of [MECHANISM_WASMTIME, 0]) {
  const how = rings === 0 ? "that rings nobody: both poll" : "that rings through an export";
  test(`a guest and a JavaScript host on its memory, ${how}`, async () => {
    const { memory, size } = makePort();
    const guest = new End(memory, 0, size, 0);
    const bell = new Guest(wasmtime!, module!, memory, STACKS + 3 * 131_072);
    let rung = 0;
    // V8's waiters and wasmtime's never meet, so the host cannot sleep; but it can ring.
    const mechanism: Mechanism = {
      rings,
      sleeps: 0,
      blocks: true,
      sleep: (_words, _index, _expected, ms) => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.min(ms, 5));
      },
      sleepAsync: () => undefined,
      notify: (words, index) => {
        rung++;
        if (rings === 0) return;
        const address = words.byteOffset + 4 * index;
        assert(bell.call("millrace_notify", address) >= 0);
      },
    };
    const view = new Uint8Array(memory.buffer, SEGMENT, size);
    using host = Port.attach<Uint8Array>(view, { side: "b", mechanism, spin: 0 });
    const attached = rung;
    for (let round = 0; round < 10; round++) {
      const asked = guest.read();
      await untilAsleep(memory, 1);
      host.write(Uint8Array.of(round, 3));
      assertEquals(await asked, DONE);
      assertEquals(guest.message(), [round, 3]);
      assertEquals(await guest.write([round, 4]), DONE);
      assertEquals([...host.read({ timeout: MS })!], [round, 4]);
    }
    assertGreater(rung, attached);
    // The word that the guest's peers see: exactly what each end can ring.
    const words = new Int32Array(memory.buffer, SEGMENT + 128, 64);
    assertEquals([words[2], words[32 + 2]], [MECHANISM_WASMTIME, rings]);
    const waiting = guest.read();
    await untilAsleep(memory, 1);
    host.close();
    assertEquals(await waiting, PEER_CLOSED);
  });
}

test("the library runs as wasm32-wasi: its tests that need no threads", async () => {
  const { code, output } = await runCommand(wasmtime!, await buildWasm("wasi", "millrace_wasi"));
  assertEquals(code, 0, output);
  assertMatch(output, /All \d+ tests passed\./);
  const passed = Number(/All (\d+) tests passed\./.exec(output)?.[1]);
  console.log(`${passed} tests as wasm32-wasi`);
  assert(passed >= 40, output);
});
