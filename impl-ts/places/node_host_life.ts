/**
 * The addon of Node by itself: wrong arguments, and what is left when memory is collected and
 * environments end. Run in Node with `--expose-gc`.
 *
 * @module
 */
import * as node from "node:assert";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { HostCalls, HostMapping } from "../src/host/calls.ts";

const { arch } = process;
const addon = createRequire(import.meta.url)(`millrace-linux-${arch}`) as HostCalls;
const SIZE = 8192;
const MFD_ALLOW_SEALING = 2;

function make(): { fd: number; mapping: HostMapping } {
  const fd = addon.openMemory("millrace", MFD_ALLOW_SEALING);
  node.ok(fd > 2);
  node.equal(addon.reserve(fd, SIZE), 0);
  return { fd, mapping: addon.map(fd, SIZE) as HostMapping };
}

/** Every wrong argument throws, with a code, and the right one beside it does not. */
function refuses(): void {
  const { fd, mapping: { memory, buffer } } = make();
  // deno-lint-ignore no-explicit-any
  const calls = addon as any;
  const type: (() => unknown)[] = [
    () => calls.open(),
    () => calls.open("a\0b", 0, 0),
    () => calls.open(new Uint8Array(4), 0, 0),
    () => calls.unlink(Symbol("path")),
    () => calls.close(1), // open, but by somebody else
    () => calls.statusOf(0),
    () => calls.lock("1", 0, 1),
    () => calls.wake({}, 0),
    () => calls.wake(buffer, 0),
    () => calls.wake(undefined, 0),
    () => calls.sleep(memory, 0n, 0, 1),
    () => calls.sleepAsync(memory, 0, 0, 1, 1),
    () => calls.release(null),
  ];
  for (const call of type) {
    node.throws(call, { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" }, `${call}`);
  }
  const range: (() => unknown)[] = [
    () => calls.close(fd + 0.5),
    () => calls.open("/dev/null", -1, 0),
    () => calls.read(fd, 2 ** 20),
    () => calls.map(fd, 0),
    () => calls.map(fd, SIZE + 1), // a touch of the rest would end the process
    () => calls.wake(memory, 2),
    () => calls.wake(memory, -4),
    () => calls.wake(memory, SIZE),
    () => calls.wake(memory, NaN),
    () => calls.sleep(memory, 0, 2 ** 31, 1),
    () => calls.sleep(memory, 0, 0, -1),
    () => calls.sleep(memory, 0, 0, Infinity),
    () => calls.sleepAsync(memory, SIZE - 3, 0, 1, true),
  ];
  for (const call of range) {
    node.throws(call, { name: "RangeError", code: "ERR_OUT_OF_RANGE" }, `${call}`);
  }
  node.equal(addon.wake(memory, SIZE - 4), 0);
  node.equal(addon.open("x".repeat(5000), 0, 0), -36); // ENAMETOOLONG
  node.equal(addon.close(fd), 0);
  node.throws(() => calls.close(fd), { code: "ERR_INVALID_ARG_TYPE" });
}

/** A mapping can be touched when it is released, when its buffer is detached, and while a sleep
 * has a word of it. */
async function outlives(): Promise<void> {
  const { fd, mapping: { memory, buffer } } = make();
  node.equal(addon.close(fd), 0);
  const words = new Int32Array(buffer);
  words[1] = 7;
  const sleep = addon.sleepAsync(memory, 0, 0, 100, true);
  node.equal(addon.release(memory), 0);
  node.equal(words[1], 0);
  node.equal(await sleep, false); // of another page: nobody rings there
  node.equal(addon.sleep(memory, 0, 1, 1000), -11); // EAGAIN
  const moved = structuredClone(buffer); // a copy: what is mapped is not moved
  node.equal(moved.byteLength, SIZE);
  (buffer as ArrayBuffer & { transfer?(): ArrayBuffer }).transfer?.();
  node.equal(addon.wake(memory, 0), 0);
}

/** What nobody has any more is given back. */
async function collects(): Promise<void> {
  const collect = (globalThis as { gc?: () => void }).gc!;
  const mapped = () => {
    return fs.readFileSync("/proc/self/maps", "utf8").split("/memfd:millrace").length - 1;
  };
  const use = () => {
    for (let round = 0; round < 100; round++) {
      const { fd, mapping } = make();
      void addon.sleepAsync(mapping.memory, 0, 0, 5, true);
      addon.close(fd);
    }
  };
  use();
  node.ok(mapped() >= 100);
  for (let round = 0; round < 100 && mapped() > 0; round++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
  }
  node.equal(mapped(), 0);
}

/** A worker that ends, however it goes, leaves no descriptor, lock or thread. */
async function ends(): Promise<void> {
  const path = `/dev/shm/millrace-life-${process.pid}`;
  const count = (kind: string) => fs.readdirSync(`/proc/self/${kind}`).length;
  const start = async () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: path });
    await new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    return worker;
  };
  fs.writeFileSync(path, new Uint8Array(SIZE), { mode: 0o600 });
  try {
    const fd = addon.open(path, 2, 0);
    await (await start()).terminate(); // Node keeps some of what its first worker opened
    const before = [count("fd"), count("task")];
    for (let round = 0; round < 10; round++) {
      const worker = await start();
      node.equal(addon.isLocked(fd, 0, 4), 1);
      await worker.terminate();
      node.equal(addon.isLocked(fd, 0, 4), 0);
    }
    node.deepEqual([count("fd"), count("task")], before);
    addon.close(fd);
  } finally {
    fs.unlinkSync(path);
  }
}

/** Locks a file, and has sleeps that go on when it is ended. */
function live(path: string): void {
  const fd = addon.open(path, 2, 0);
  node.equal(addon.lock(fd, 0, 4), 0);
  const { memory } = addon.map(fd, SIZE) as HostMapping;
  for (let index = 0; index < 10; index++) {
    void addon.sleepAsync(memory, index * 4, 0, index * 100, index % 2 === 0);
  }
  parentPort!.postMessage("ready");
}

/** An environment ends while it has not been told yet that its sleeps are over. */
async function endsUntold(): Promise<void> {
  for (let round = 0; round < 40; round++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: "" });
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    await new Promise((resolve) => worker.once("message", resolve));
    await new Promise((resolve) => setTimeout(resolve, 3));
    await worker.terminate();
    await ended;
  }
}

/** Has sleeps that end, and never lets its loop come to that. */
function liveUntold(): void {
  const { mapping: { memory } } = make();
  // One after the other, so that some end while the environment does.
  for (let index = 0; index < 100; index++) {
    void addon.sleepAsync(memory, 4, 0, index / 5, true);
  }
  parentPort!.postMessage("ready");
  const end = performance.now() + 10_000;
  while (performance.now() < end);
}

if (isMainThread) {
  // By itself: in a process that has used the addon, other memory may lie where a fault would look.
  if (process.argv[2] === "untold") {
    await endsUntold();
  } else {
    refuses();
    await outlives();
    await collects();
    await ends();
  }
  console.log("played");
} else if (workerData !== "") {
  live(workerData);
} else {
  liveUntold();
}
