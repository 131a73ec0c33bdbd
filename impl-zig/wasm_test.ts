import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { layout } from "../impl-ts/src/memory/layout.ts";
import { agentMechanism, Port } from "../impl-ts/src/mod.ts";
import { findProgram } from "../tools/programs.ts";
import { buildWasm } from "../tools/wasm_worker.ts";
import { loadMailboxes, loadMillrace, type Millrace, SHARED_FROM, WasmError } from "./wasm.ts";
import { REASON_NAMES } from "./wasm_reasons.ts";
import type { Order } from "./wasm_worker_fixture.ts";

/** What a page should not have to wait for. */
const SIZE_MAX = 24 * 1024;
/** Bounds each wait. */
const TIMEOUT = 20_000;

const bytes = await buildWasm("wasm", "millrace");
const mailboxBytes = await buildWasm("wasm", "millrace_mailbox");
const module = await WebAssembly.compile(bytes);

/** Runs something that must fail with a `WasmError`, and returns its code. */
function codeOf(call: () => unknown): string {
  const error = assertThrows(call);
  assertInstanceOf(error, WasmError);
  return error.code;
}

function pair(millrace: Millrace, options: { capacity?: number; inboxSize?: number } = {}) {
  const port = millrace.createPort({ capacity: 4096, spinUs: 0, ...options });
  const other = millrace.attachPort(port.segment, { endpoint: 1, spinUs: 0 });
  return { port, other };
}

Deno.test("millrace.wasm and millrace_mailbox.wasm are below 24 KiB", () => {
  console.log(`millrace.wasm ${bytes.length} bytes, millrace_mailbox.wasm ${mailboxBytes.length}`);
  assert(bytes.length <= SIZE_MAX, `millrace.wasm has ${bytes.length} bytes`);
  assert(mailboxBytes.length <= SIZE_MAX, `millrace_mailbox.wasm has ${mailboxBytes.length} bytes`);
});

Deno.test("every source loads: bytes, a module, a response, an address", async () => {
  const version = layout.VERSION_MAJOR * 65_536 + layout.VERSION_MINOR;
  const sources = [
    bytes,
    module,
    new Response(bytes),
    new URL("../zig-out/bin/millrace.wasm", import.meta.url),
  ];
  for (const source of sources) assertEquals((await loadMillrace(source)).version, version);
  await assertRejects(() => loadMillrace(new Response("", { status: 404 })), TypeError);
  await assertRejects(() => loadMillrace(new Uint8Array(8)), WebAssembly.CompileError);
  await assertRejects(() => loadMillrace(mailboxBytes), WebAssembly.LinkError);
  await assertRejects(() => loadMailboxes(bytes), WebAssembly.LinkError);
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384 });
  await assertRejects(() => loadMillrace(module, { memory }), WebAssembly.LinkError);
});

Deno.test("messages of every size pass both ways, with codec and tag", async () => {
  const { port, other } = pair(await loadMillrace(module));
  for (const size of [0, 1, 118, 2000, 3900]) {
    const payload = Uint8Array.from({ length: size }, (_, index) => index * 7);
    for (const [from, to] of [[port, other], [other, port]] as const) {
      from.write(payload, { codec: 200, tag: size, timeout: TIMEOUT });
      assertEquals(to.read({ timeout: TIMEOUT }), { payload, codec: 200, tag: size, kind: 1 });
    }
  }
  assertEquals(port.read({ timeout: 0 }), undefined);
  assertEquals(port.ended, false);
});

Deno.test("claim, publish, peek and release do not copy; abandon takes back", async () => {
  const millrace = await loadMillrace(module);
  const { port, other } = pair(millrace);
  port.claim(10);
  assertThrows(() => port.claim(10), RangeError);
  port.abandon();
  assertThrows(() => port.abandon(), RangeError);
  const place = port.claim(10);
  place!.set([1, 2, 3]);
  port.publish({ size: 3, tag: 9 });
  const frame = other.peek({ timeout: TIMEOUT })!;
  assertEquals([...frame.payload], [1, 2, 3]);
  assert(frame.payload.buffer === millrace.memory.buffer);
  assertEquals([frame.tag, frame.first, frame.last, frame.total], [9, true, true, 3]);
  assertThrows(() => other.read({ timeout: 0 }), RangeError);
  other.release();
  assertThrows(() => other.release(), RangeError);
  assertEquals(other.peek({ timeout: 0 }), undefined);
});

Deno.test("JSON passes, alone and in a batch", async () => {
  const { port, other } = pair(await loadMillrace(module));
  const values = [{ cmd: "run", text: "gr\u{fc}n" }, null, [1, [2]], "x"];
  for (const value of values) port.writeJson(value, { timeout: TIMEOUT });
  port.write(new TextEncoder().encode("[1,{},null]"), { codec: 3, timeout: TIMEOUT });
  const read = () => other.readJson({ timeout: 0 });
  assertEquals(values.map(read), values);
  assertEquals([read(), read(), read(), read()], [1, {}, null, undefined]);
  port.write(Uint8Array.of(0xff), { codec: 2, timeout: TIMEOUT });
  assertEquals(codeOf(read), "message.text");
  port.write(new TextEncoder().encode("{"), { codec: 2, timeout: TIMEOUT });
  assertEquals(codeOf(read), "message.json");
  port.write(new Uint8Array(3), { timeout: TIMEOUT });
  assertEquals(codeOf(read), "message.json");
  assertThrows(() => port.writeJson(undefined), TypeError);
});

Deno.test("what fails has the name of its reason", async () => {
  const millrace = await loadMillrace(module);
  const { port, other } = pair(millrace, { capacity: 256 });
  assert(port.tryWrite(new Uint8Array(112)));
  assert(!port.tryWrite(new Uint8Array(112)));
  const full = () => port.write(new Uint8Array(112), { timeout: 1 });
  assertEquals(codeOf(full), "wait.timeout");
  assertThrows(() => port.write(new Uint8Array(65_537)), RangeError);
  const taken = () => millrace.attachPort(port.segment, { endpoint: 1 });
  assertEquals(codeOf(taken), "segment.endpoint");
  const odd = { address: port.segment.address + 64, size: port.segment.size };
  assertEquals(codeOf(() => millrace.attachPort(odd, { endpoint: 1 })), "segment.size");
  const blank = { address: millrace.allocate(4096), size: 4096 };
  const unready = () => millrace.attachPort(blank, { endpoint: 1, timeout: 1 });
  assertEquals(codeOf(unready), "segment.unready");
  const outside = { address: 2 ** 31, size: 4096 };
  assertThrows(() => millrace.attachPort(outside, { endpoint: 1 }), RangeError);
  assertThrows(() => millrace.createPort({ capacity: 300 }), RangeError);
  port.close();
  assertEquals(codeOf(() => port.read({ timeout: 0 })), "pipe.closed");
  other.read({ timeout: 0 });
  assertEquals(codeOf(() => other.read({ timeout: 0 })), "peer.closed");
});

Deno.test("a message that is too large costs itself; a fault of the peer says why", async () => {
  const millrace = await loadMillrace(module);
  const port = millrace.createPort({ capacity: 4096, spinUs: 0 });
  const { segment } = port;
  const small = millrace.attachPort(segment, { endpoint: 1, messageSize: 16, spinUs: 0 });
  port.write(new Uint8Array(17), { timeout: TIMEOUT });
  port.write(new Uint8Array(16), { timeout: TIMEOUT });
  assertEquals(codeOf(() => small.read({ timeout: 0 })), "message.size");
  assertEquals(small.read({ timeout: 0 })?.payload.length, 16);
  // The tail of the ring from 0 to 1: its control area stands after the two tables.
  const control = segment.address + 128 + 2 * 128 + 2 * 64;
  Atomics.store(new Int32Array(millrace.memory.buffer), control / 4, 5);
  const found = assertThrows(() => small.read({ timeout: 0 }));
  assertInstanceOf(found, WasmError);
  assertEquals([found.code, found.reason], ["ring.cursor", undefined]);
  const failed = assertThrows(() => port.read({ timeout: 0 }));
  assertInstanceOf(failed, WasmError);
  assertEquals([failed.code, failed.reason], ["pipe.failed", "ring.cursor"]);
});

Deno.test("end is the end of the stream, after everything before it", async () => {
  const { port, other } = pair(await loadMillrace(module));
  port.write(Uint8Array.of(1));
  port.end();
  assertEquals(other.ended, false);
  assertEquals(other.read({ timeout: 0 })?.payload.length, 1);
  assertEquals(other.read({ timeout: 0 }), undefined);
  assertEquals(other.ended, true);
  assertEquals(codeOf(() => port.write(Uint8Array.of(1))), "pipe.ended");
});

Deno.test("memory grows as things are placed, and instances on it agree where", async () => {
  const millrace = await loadMillrace(module);
  const other = await loadMillrace(module, { memory: millrace.memory });
  const mailboxes = await loadMailboxes(mailboxBytes, { memory: millrace.memory });
  const places = [millrace, other, mailboxes, other].map((host) => host.allocate(1000));
  for (const [index, place] of places.entries()) {
    assert(place % 128 === 0 && place > SHARED_FROM);
    if (index > 0) assert(place >= places[index - 1]! + 1000);
  }
  const port = millrace.createPort({ capacity: 1 << 22 });
  assert(millrace.memory.buffer.byteLength > 1 << 23);
  const far = other.attachPort(port.segment, { endpoint: 1 });
  port.writeJson({ far: true });
  assertEquals(far.readJson({ timeout: TIMEOUT }), { far: true });
  assertThrows(() => millrace.allocate(2 ** 30), RangeError);
  assertThrows(() => millrace.freeAll(), TypeError);
});

Deno.test("an instance in a region stays in it, and gives all of it back", async () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  const region = { address: 1 << 20, size: 1 << 19 };
  const millrace = await loadMillrace(module, { memory, region });
  const first = millrace.allocate(100);
  assert(first >= region.address + 128 * 1024);
  const { port } = pair(millrace);
  port.writeJson(1);
  assertThrows(() => millrace.allocate(1 << 19), RangeError);
  millrace.freeAll();
  assertEquals(millrace.allocate(100), first);
  const again = pair(millrace);
  again.port.writeJson(2);
  assertEquals(again.other.readJson({ timeout: 0 }), 2);
  const inside = { address: 4096, size: 1 << 20 };
  await assertRejects(() => loadMillrace(module, { memory, region: inside }), RangeError);
});

for (const spinUs of [0, 50]) {
  Deno.test(`a worker on the same memory echoes, spinning for ${spinUs} us`, async () => {
    const millrace = await loadMillrace(module);
    const port = millrace.createPort({ spinUs });
    const url = new URL("./wasm_worker_fixture.ts", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    const verdict = new Promise((done) => worker.onmessage = ({ data }) => done(data));
    const { memory } = millrace;
    const order: Order = { module, memory, segment: port.segment, spinUs, timeout: TIMEOUT };
    worker.postMessage(order);
    for (let tag = 0; tag < 200; tag++) {
      port.write(new Uint8Array(tag), { tag, timeout: TIMEOUT });
      const message = port.read({ timeout: TIMEOUT });
      assertEquals([message?.tag, message?.payload.length], [tag, tag]);
    }
    port.end();
    assertEquals(port.read({ timeout: TIMEOUT }), undefined);
    assert(port.ended);
    assertEquals(await verdict, "ended");
    worker.terminate();
    if (spinUs === 0) assert(port.stats().parks > 0);
  });
}

Deno.test("the TypeScript implementation is a peer on the same memory", async () => {
  const millrace = await loadMillrace(module);
  const port = millrace.createPort({ capacity: 4096 });
  const { address, size } = port.segment;
  const view = new Uint8Array(millrace.memory.buffer, address, size);
  using other = Port.attach(view, { side: "b", mechanism: agentMechanism() });
  port.writeJson({ from: "zig" }, { tag: 5 });
  assertEquals(other.tryRead(), { from: "zig" });
  other.write({ from: "ts" });
  assertEquals(port.readJson({ timeout: TIMEOUT }), { from: "ts" });
});

Deno.test("an endpoint states and sleeps by the mechanism that its host names", () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  const now_us = () => performance.now() * 1000;
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, millrace: { now_us } });
  const call = (name: string, ...words: number[]) =>
    (exports[name] as (...words: number[]) => number)(...words);
  const [object, out, storage] = [1 << 20, (1 << 20) + 1024, (1 << 20) + 2048];
  const create = (segment: number, thread: number) =>
    call("millrace_port_create", object, segment, 65_536, 4096, 4096, 0, 0, thread);
  const words = new Int32Array(memory.buffer);
  for (const [index, thread] of [1, 4, 0, 257, 256].entries()) {
    const segment = (2 << 20) + index * 65_536;
    assertEquals(create(segment, thread), 1);
    assertEquals(words[segment / 4 + 32 + 2], thread & 255);
    const status = call("millrace_port_read", object, storage, 1024, out, 20);
    assertEquals(REASON_NAMES[-status], thread & 256 ? "wait.forbidden" : undefined);
    if (thread < 256) assertEquals(status, 0);
  }
  for (const thread of [2, 3, 5, 8, 512, -1]) assertEquals(create(3 << 20, thread), -256);
});

Deno.test("a message of 0 bytes lies where the caller's storage is", () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  const imports = { env: { memory }, millrace: { now_us: () => performance.now() * 1000 } };
  const { exports } = new WebAssembly.Instance(module, imports);
  const call = (name: string, ...words: number[]) =>
    (exports[`millrace_port_${name}`] as (...words: number[]) => number)(...words);
  const [a, b, out, segment] = [1, 1.5, 2, 3].map((place) => place * 2 ** 20) as [
    number,
    number,
    number,
    number,
  ];
  assertEquals(call("create", a, segment, 65_536, 4096, 4096, 0, 0, 1), 1);
  assertEquals(call("attach", b, segment, 65_536, 1, 1, 0), 1);
  const address = () => new Uint32Array(memory.buffer)[out / 4];
  for (const [storage, capacity] of [[0, 0], [1000, 0], [1000, 8]] as const) {
    assertEquals(call("write", a, 0, 0, 0, 0, 0), 1);
    assertEquals(call("read", b, storage, capacity, out, 0), 1);
    assertEquals(address(), storage);
  }
  assertEquals(call("write", a, 0, 0, 0, 0, 0), 1);
  assertEquals(call("peek", b, out, 0), 1);
  assert(address()! > segment && address()! <= segment + 65_536);
  assertEquals(call("release", b), 1);
});

Deno.test("[wait.no_block] on a thread that must not block, no call reads the clock", () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  let readings = 0;
  const now_us = () => {
    // A page's clock stands still for up to a millisecond; this one for ever.
    if (++readings > 1000) throw new Error("a call waits for the clock to move");
    return 1;
  };
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, millrace: { now_us } });
  const call = (name: string, ...words: number[]) =>
    (exports[name] as (...words: number[]) => number)(...words);
  const [object, out, storage, segment] = [1, 2, 3, 4].map((place) => place << 19) as [
    number,
    number,
    number,
    number,
  ];
  assertEquals(call("millrace_port_create", object, segment, 65_536, 4096, 4096, 0, 0, 257), 1);
  for (const timeout of [20, Infinity]) {
    const status = call("millrace_port_read", object, storage, 1024, out, timeout);
    assertEquals(REASON_NAMES[-status], "wait.forbidden");
  }
  assertEquals(readings, 0);
});

Deno.test("a mailbox carries payloads in parts, and says when it is closed", async () => {
  const mailboxes = await loadMailboxes(mailboxBytes);
  const section = { address: mailboxes.allocate(64), size: 64 };
  const writer = mailboxes.openWriter(section);
  const reader = mailboxes.openReader(section);
  assertEquals(reader.read({ timeout: 0 }), undefined);
  assert(writer.write([1], { timeout: 0 }));
  assertEquals(reader.read({ timeout: 0 }), [1]);
  const long = [{ text: "x".repeat(40) }, null];
  assert(!writer.write(long, { timeout: 0 }));
  assert(writer.partial);
  assertThrows(() => writer.write([2]), TypeError);
  assertEquals(reader.read({ timeout: 0 }), undefined);
  assert(writer.resume({ timeout: 0 }));
  assertEquals(reader.read({ timeout: 0 }), long);
  assertThrows(() => writer.resume(), TypeError);
  assertThrows(() => writer.write([]), TypeError);
  assertThrows(() => writer.write(["x".repeat(65_536)]), RangeError);
  const short = { address: section.address, size: 32 };
  assertEquals(codeOf(() => mailboxes.openReader(short)), "mailbox.size");
  writer.close();
  assertEquals(codeOf(() => reader.read({ timeout: 0 })), "peer.closed");
  assertEquals(codeOf(() => writer.write([3])), "pipe.closed");
});

Deno.test("[wait.no_block] a side of a mailbox obeys its host, too", async () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 16_384, shared: true });
  const imports = { env: { memory }, millrace: { now_us: () => performance.now() * 1000 } };
  const { exports } = (await WebAssembly.instantiate(mailboxBytes, imports)).instance;
  const call = (name: string, ...words: number[]) =>
    (exports[`millrace_mailbox_${name}`] as (...words: number[]) => number)(...words);
  const [section, reader, writer, text] = [1 << 20, 2 << 20, 3 << 20, 3.5 * 2 ** 20];
  new Uint8Array(memory.buffer).set(new TextEncoder().encode("[1]"), text);
  const create = (thread: number) => [
    call("reader_create", reader, section, 40, thread),
    call("writer_create", writer, section, 40, thread),
  ];
  for (const thread of [2, 3, 5, 8, 512, -1]) assertEquals(create(thread), [-256, -256]);
  for (const thread of [257, 260, 256]) {
    assertEquals(create(thread), [1, 1]);
    const read = (timeout: number) => call("reader_read", reader, text + 64, 64, timeout);
    const write = (timeout: number) => call("writer_write", writer, text, 3, timeout);
    assertEquals(REASON_NAMES[-read(1000)], "wait.forbidden");
    assertEquals(write(1000), 1);
    assertEquals(REASON_NAMES[-write(1000)], "wait.forbidden");
    assertEquals([read(1000), read(0)], [3, 0]);
  }
  for (const thread of [1, 4, 0]) {
    assertEquals(create(thread), [1, 1]);
    assertEquals(call("reader_read", reader, text + 64, 64, 5), 0);
  }
});

const node = await findProgram(["node"]);
Deno.test({
  name: "Node loads it too, from its bytes",
  ignore: node === undefined,
  async fn() {
    const program = `
      import { readFile } from "node:fs/promises";
      import { loadMillrace } from "./wasm.ts";
      const millrace = await loadMillrace(await readFile("../zig-out/bin/millrace.wasm"));
      const port = millrace.createPort({ capacity: 4096 });
      const other = millrace.attachPort(port.segment, { endpoint: 1 });
      port.writeJson({ in: "node" });
      console.log(JSON.stringify(other.readJson({ timeout: 1000 })));`;
    const { stdout, stderr } = await new Deno.Command(node!, {
      args: ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", program],
      cwd: import.meta.dirname!,
    }).output();
    assertEquals(new TextDecoder().decode(stderr), "");
    assertEquals(new TextDecoder().decode(stdout), `{"in":"node"}\n`);
  },
});

Deno.test("the examples in the doc comments run", async () => {
  const args = ["test", "--doc", "--no-check", "-A", "wasm.ts", "wasm_mailbox.ts"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: import.meta.dirname!,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assertEquals(code, 0, text);
  assert(Number(/(\d+) passed/.exec(text)?.[1]) >= 3, text);
});
