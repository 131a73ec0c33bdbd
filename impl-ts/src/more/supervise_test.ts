import { assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { assertStringIncludes } from "@std/assert";
import { Worker as NodeWorker } from "node:worker_threads";
import { PeerClosedError, PeerFailedError } from "../error.ts";
import { codeOf } from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { Port } from "../port/port.ts";
import { portGeometry, type Side } from "../port/options.ts";
import { type Memory, Segment } from "../memory/segment.ts";
import { failEndpoint } from "../wait/state.ts";
import { holdLife, supervise, type WorkerLike } from "./supervise.ts";
import type { SuperviseTask } from "./supervise_worker_fixture.ts";
import { waitForPeer } from "./peer.ts";
import { revive } from "./revive.ts";

const WAIT = { timeout: 60_000 };

/** A worker that has attached to its side of a port, and what it says next. */
async function started(
  { memory }: { readonly memory: Memory },
  then: SuperviseTask["then"],
  { side = "b", lock }: { side?: Side; lock?: string } = {},
): Promise<{ worker: Worker; said: Promise<unknown> }> {
  const url = new URL("./supervise_worker_fixture.ts", import.meta.url);
  const worker = new Worker(url, { type: "module" });
  const hear = () => new Promise<unknown>((resolve) => worker.onmessage = (e) => resolve(e.data));
  const attached = hear();
  const task: SuperviseTask = { memory: memory as SharedArrayBuffer, side, lock, then };
  worker.postMessage(task);
  assertEquals(await attached, "attached");
  return { worker, said: hear() };
}

/** Stands for a worker of `node:worker_threads`. */
class FakeWorker implements WorkerLike {
  readonly listeners = new Map<string, ((value: unknown) => void)[]>();
  terminated = 0;

  terminate(): Promise<number> {
    this.terminated++;
    return Promise.resolve(1);
  }

  on(type: string, listener: (value: unknown) => void): this {
    this.listeners.set(type, [...this.listeners.get(type) ?? [], listener]);
    return this;
  }

  off(type: string, listener: (value: unknown) => void): this {
    this.listeners.set(type, this.listeners.get(type)!.filter((each) => each !== listener));
    return this;
  }

  emit(type: string, value: unknown): void {
    for (const listener of this.listeners.get(type) ?? []) listener(value);
  }
}

/** The reason with which a port's peer is marked failed. */
function reasonOf(port: Port): unknown {
  return assertThrows(() => port.tryRead(), PeerFailedError).reason;
}

Deno.test("a worker that has crashed is started again in the same memory", async () => {
  using hub = Hub.create<string>(2, { capacity: 256 });
  let port = hub.ports[0]!;
  for (let round = 0; round < 3; round++) {
    const { worker } = await started(port, "throw");
    using supervision = supervise(worker, port);
    worker.postMessage("throw");
    assertEquals((await supervision.failed).marked, true);
    assertEquals(reasonOf(port as Port), "peer.terminated");
    port = revive(port);
    // A late signal does not mark the next owner. [segment.state_owner]
    using next = Port.from<string>(port.handoff());
    await supervision.terminate();
    next.write("hello");
    assertEquals(port.read(WAIT), "hello");
    next.close();
    assertThrows(() => port.tryRead(), PeerClosedError);
    port = revive(port);
  }
});

Deno.test("terminate frees a thread that is blocked on the worker", async () => {
  const segment = Segment.allocate(portGeometry()); // both sides belong to workers
  const blocked = await started(segment, "read", { side: "a" });
  const ending = await started(segment, "read");
  using supervision = supervise(ending.worker, { segment, index: 1 });
  await new Promise((resolve) => setTimeout(resolve, 150)); // by now it sleeps, slice after slice
  const before = performance.timeOrigin + performance.now();
  supervision.terminate();
  const { code, reason, at } = await blocked.said as { code: string; reason: string; at: number };
  assertEquals([code, reason], ["peer.failed", "peer.terminated"]);
  assertEquals(await supervision.failed, { signal: "terminate", cause: undefined, marked: true });
  console.log(`  woke after ${(at - before).toFixed(1)} ms`);
  blocked.worker.terminate();
});

Deno.test("an uncaught error of the worker is found, and does not end this thread", async () => {
  const port = Port.create();
  const { worker } = await started(port, "throw");
  using supervision = supervise(worker, port);
  worker.postMessage("throw");
  assertEquals(await codeOf(port.readAsync(WAIT)), "peer.failed");
  const { signal, cause, marked } = await supervision.failed;
  assertEquals([signal, String(cause).includes("broken"), marked], ["error", true, true]);
  worker.terminate();
});

Deno.test("a worker whose script is not there fails with a cause that names its URL", async () => {
  const port = Port.create();
  // Where nobody answers. Of a file that is missing, a Deno that checks types says only that.
  const url = new URL("http://127.0.0.1:1/no_such_worker.js");
  const worker = new Worker(url, { type: "module" });
  using _supervision = supervise(worker, port);
  worker.postMessage(port.handoff());
  const error = await assertRejects(() => port.readAsync(WAIT), PeerFailedError);
  assertStringIncludes(String(error.cause), url.href);
  // The next owner ends in its own way, for which no cause is known.
  revive(port);
  failEndpoint(port.segment, 1);
  assertEquals(assertThrows(() => port.tryRead(), PeerFailedError).cause, undefined);
});

Deno.test("an error event that says nothing is a script that was not loaded", async () => {
  // As browsers report it.
  const worker = Object.assign(new EventTarget(), { terminate() {} });
  const port = Port.create();
  using supervision = supervise(worker, port);
  worker.dispatchEvent(new Event("error", { cancelable: true }));
  const { cause } = await supervision.failed;
  assertStringIncludes(String(cause), "its script, or one that it imports, could not be loaded");
  assertEquals(assertThrows(() => port.tryRead(), PeerFailedError).cause, cause);
});

Deno.test("what a worker's error did not end has another cause", async () => {
  const worker = Object.assign(new EventTarget(), { terminate() {} });
  const port = Port.create();
  failEndpoint(port.segment, 1, "frame.size");
  using supervision = supervise(worker, port);
  worker.dispatchEvent(new ErrorEvent("error", { message: "broken", cancelable: true }));
  assertEquals(await supervision.failed, { signal: "error", cause: "broken", marked: false });
  assertEquals(assertThrows(() => port.tryRead(), PeerFailedError).cause, undefined);
});

Deno.test("terminate ends a worker that is itself blocked in a read", async () => {
  const port = Port.create();
  const lock = crypto.randomUUID();
  const { worker } = await started(port, "read", { lock });
  using supervision = supervise(worker, port);
  await supervision.terminate();
  assertEquals(reasonOf(port), "peer.terminated");
  const signal = AbortSignal.timeout(5000); // the worker's own read would take twice as long
  const { locks } = navigator as unknown as {
    locks: { request(name: string, options: object, run: () => string): Promise<string> };
  };
  assertEquals(await locks.request(lock, { signal }, () => "gone"), "gone");
});

for (const then of ["close", "stay"] as const) {
  const how = then === "close" ? "its own close" : "a bare terminate";
  Deno.test(`a worker that holds its life is found after ${how}`, async () => {
    const port = Port.create();
    const lock = crypto.randomUUID();
    const { worker } = await started(port, then, { lock });
    using supervision = supervise(worker, port, { lock });
    const reading = codeOf(port.readAsync(WAIT));
    if (then !== "close") {
      assertEquals(waitForPeer(port, { timeout: 0 }), true);
      worker.terminate();
    }
    assertEquals(await reading, "peer.failed");
    const { signal, marked } = await supervision.failed;
    assertEquals([signal, marked, reasonOf(port)], ["lock", true, "peer.terminated"]);
    worker.terminate();
  });
}

Deno.test("a bare terminate without a lock is found by the caller's timeout alone", async () => {
  const port = Port.create();
  const { worker } = await started(port, "stay");
  using _supervision = supervise(worker, port);
  worker.terminate();
  assertEquals(await port.readAsync({ timeout: 150 }), undefined);
});

Deno.test("a worker that has not come yet, or lives, is not taken for dead", async () => {
  const port = Port.create();
  const lock = crypto.randomUUID();
  const idle: WorkerLike = { terminate: () => {} };
  using supervision = supervise(idle, port, { lock });
  assertEquals(await port.readAsync({ timeout: 150 }), undefined);
  const { worker } = await started(port, "stay", { lock });
  assertEquals(await port.readAsync({ timeout: 150 }), undefined);
  worker.terminate();
  assertEquals((await supervision.failed).signal, "lock");
});

Deno.test("a worker's place in a hub is marked, and the others go on", async () => {
  const hub = Hub.create<number>(2);
  const lock = crypto.randomUUID();
  const other = Port.attach<number>(hub.memory, { endpoint: 2 });
  const worker = new FakeWorker();
  using supervision = supervise(worker, hub.ports[0]!, { lock });
  await supervision.terminate();
  assertEquals([worker.terminated, reasonOf(hub.ports[0]! as Port)], [1, "peer.terminated"]);
  other.write(3);
  assertEquals(hub.ports[1]!.read(), 3);
});

Deno.test("the events of a Node worker are found, the first of them counts", async () => {
  for (const [type, value] of [["exit", 0], ["exit", 3], ["error", new Error("broken")]] as const) {
    const ports = [Port.create(), Port.create()];
    const worker = new FakeWorker();
    using supervision = supervise(worker, ports);
    worker.emit(type, value);
    worker.emit("exit", 7);
    assertEquals(await supervision.failed, { signal: type, cause: value, marked: true });
    for (const port of ports) assertEquals(reasonOf(port), "peer.terminated");
  }
});

Deno.test("a real Node worker's exit and error are found", async () => {
  for (const [code, signal] of [["process.exit(3)", "exit"], ["throw Error('x')", "error"]]) {
    const port = Port.create();
    const source = `require("node:worker_threads").parentPort.once("message", () => { ${code} })`;
    const worker = new NodeWorker(source, { eval: true });
    using supervision = supervise(worker, port);
    worker.postMessage("go");
    assertEquals(await codeOf(port.readAsync(WAIT)), "peer.failed");
    assertEquals((await supervision.failed).signal, signal);
    await supervision.terminate();
  }
});

Deno.test("the close event that Bun's web workers have is their end", async () => {
  const port = Port.create();
  const worker = new EventTarget() as EventTarget & WorkerLike;
  worker.terminate = () => {};
  const supervision = supervise(worker, port);
  worker.dispatchEvent(Object.assign(new Event("close"), { code: 3 }));
  assertEquals(await supervision.failed, { signal: "exit", cause: 3, marked: true });
  assertEquals(reasonOf(port), "peer.terminated");
});

Deno.test("a worker that has closed its port is not marked", async () => {
  const port = Port.create();
  Port.attach(port.memory).close();
  const worker = new FakeWorker();
  using supervision = supervise(worker, port);
  worker.emit("exit", 0);
  assertEquals((await supervision.failed).marked, false);
  assertThrows(() => port.read(), Error, "peer.closed");
});

Deno.test("what is disposed watches no more", () => {
  const port = Port.create();
  const worker = new FakeWorker();
  const supervision = supervise(worker, port);
  supervision[Symbol.dispose]();
  worker.emit("exit", 0);
  assertEquals([...worker.listeners.values()].flat().length, 0);
  assertEquals(port.tryRead(), undefined);
  const page = new EventTarget() as EventTarget & WorkerLike;
  page.terminate = () => {};
  supervise(page, port)[Symbol.dispose]();
  for (const type of ["error", "close"]) page.dispatchEvent(new Event(type));
  assertEquals(port.tryRead(), undefined);
  const other = Port.create();
  const stopped = supervise(worker, other);
  stopped[Symbol.dispose]();
  stopped.terminate();
  assertEquals(reasonOf(other), "peer.terminated");
  supervise(page, port);
  const error = new Event("error", { cancelable: true });
  page.dispatchEvent(error);
  assertEquals([error.defaultPrevented, reasonOf(port)], [true, "peer.terminated"]);
});

Deno.test("the endpoints are marked also where terminate throws", async () => {
  const port = Port.create();
  const worker = { terminate: () => assertInstanceOf(null, Date) };
  using supervision = supervise(worker as unknown as WorkerLike, port);
  await assertRejects(() => supervision.terminate(), Error);
  assertEquals(reasonOf(port), "peer.terminated");
});

Deno.test("supervise refuses what cannot be marked", () => {
  const { segment } = Port.create();
  const worker = new FakeWorker();
  assertThrows(() => supervise(worker, []), TypeError);
  for (const index of [-1, 2, 0.5]) {
    assertThrows(() => supervise(worker, { segment, index }), RangeError);
  }
  assertEquals(worker.listeners.size, 0);
});

Deno.test("holdLife refuses a lock that another has, and does without locks", async () => {
  const lock = crypto.randomUUID();
  assertEquals(await holdLife(lock), true);
  await assertRejects(() => holdLife(lock), TypeError, "another");
  const { navigator } = globalThis;
  const port = Port.create();
  try {
    Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
    assertEquals(await holdLife(lock), false);
    using _supervision = supervise(new FakeWorker(), port, { lock });
    Port.attach(port.memory);
    assertEquals(await port.readAsync({ timeout: 150 }), undefined);
  } finally {
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  }
});
