// Hosts the Zig side of the interop tests: one instance of `worker.zig` that blocks in its calls.

import { scope } from "../../tools/worker_scope.ts";
import type { Answer, Order } from "./order.ts";

/** What `worker.zig` exports. Each call returns 0, a reason code, or 2^24 + a message's number. */
interface Exports {
  heap_base(): number;
  attach(address: number, size: number, endpoint: number, spin: number, timeout: number): number;
  write_all(seed: number, capacity: number, count: number, timeout: number): number;
  read_all(seed: number, capacity: number, count: number, timeout: number): number;
  echo_all(timeout: number): number;
  close(): void;
  parks(): number;
}

const STATUS_DIFFERS = 1 << 24;

scope.onmessage = ({ data }: MessageEvent<Order>) => scope.postMessage(run(data));

function run(order: Order): Answer {
  const { memory, offset, size, endpoint, spin, timeout } = order;
  try {
    const instance = new WebAssembly.Instance(order.module!, {
      env: { memory },
      millrace: { now_us: () => performance.now() * 1000 },
    });
    const exports = instance.exports as unknown as Exports;
    if (exports.heap_base() > offset) throw new RangeError("the segment lies in the module's data");
    const status = exports.attach(offset, size, endpoint, spin, timeout) || perform(exports, order);
    const parks = exports.parks();
    exports.close();
    return { fault: faultOf(status), parks };
  } catch (error) {
    return { fault: `${(error as Error).name}: ${(error as Error).message}`, parks: 0 };
  }
}

function perform(exports: Exports, { role, seed, capacity, count, timeout }: Order): number {
  switch (role) {
    case "write":
      return exports.write_all(seed, capacity, count, timeout);
    case "read":
      return exports.read_all(seed, capacity, count, timeout);
    case "echo":
      return exports.echo_all(timeout);
    default:
      throw new TypeError(`the Zig worker has no role ${role}`);
  }
}

function faultOf(status: number): string {
  if (status === 0) return "";
  return status < STATUS_DIFFERS
    ? `reason code ${status}`
    : `message ${status - STATUS_DIFFERS} is missing or differs`;
}
