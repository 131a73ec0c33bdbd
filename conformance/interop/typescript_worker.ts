// The TypeScript side of the interop tests; `worker.zig` is the other one.

import { Port } from "../../impl-ts/src/mod.ts";
import { scope } from "../../tools/worker_scope.ts";
import type { Answer, Order } from "./order.ts";
import { faultOf, fill, Workload } from "./workload.ts";

scope.onmessage = ({ data: order }: MessageEvent<Order>) => {
  let port: Port | undefined;
  let fault: string;
  try {
    const memory = new Uint8Array(order.memory.buffer, order.offset, order.size);
    const { endpoint, spin, timeout } = order;
    port = Port.attach(memory, { side: endpoint === 0 ? "a" : "b", spin, timeout });
    fault = roles[order.role](port, order) ?? "";
  } catch (error) {
    fault = `${(error as Error).name}: ${(error as Error).message}`;
  }
  const answer: Answer = { fault, parks: port?.stats.parks ?? 0 };
  scope.postMessage(answer);
  port?.close();
};

const roles = { write, read, echo, drive };

function write(port: Port, { seed, capacity, count, timeout }: Order): string | undefined {
  const workload = new Workload(seed, capacity);
  const scratch = new Uint8Array(workload.sizeMax);
  for (let index = 0; index < count; index++) writeNext(port, workload, scratch, timeout);
  port.end();
  return undefined;
}

/** Small messages alternate between the two ways to write one, so that both meet the other side. */
function writeNext(port: Port, workload: Workload, scratch: Uint8Array, timeout: number): number {
  const message = workload.next();
  if (message.tag % 2 === 0 && message.size < 64) {
    const place = port.claim(message.size, { codec: 0, tag: message.tag, timeout });
    fill(message, place.payload);
    port.publish();
  } else {
    port.writeMessage({ payload: fill(message, scratch), codec: 0, tag: message.tag }, { timeout });
  }
  return message.size;
}

function read(port: Port, { seed, capacity, count, timeout }: Order): string | undefined {
  const workload = new Workload(seed, capacity);
  const storage = new Uint8Array(workload.sizeMax);
  for (let index = 0; index < count; index++) {
    const fault = readNext(port, workload, storage, timeout);
    if (fault !== undefined) return fault;
  }
  return endFault(port, timeout);
}

function readNext(
  port: Port,
  workload: Workload,
  storage: Uint8Array,
  timeout: number,
): string | undefined {
  const expected = workload.next();
  const size = port.readInto(storage, { timeout });
  if (size === undefined) return `message ${expected.tag} did not come`;
  return faultOf(expected, port.reader.tag, storage.subarray(0, size));
}

function endFault(port: Port, timeout: number): string | undefined {
  if (port.readMessage({ timeout }) !== undefined) return "a message came behind the last";
  return port.ended ? undefined : "the stream did not end";
}

function echo(port: Port, { timeout }: Order): string | undefined {
  for (let message; (message = port.readMessage({ timeout })) !== undefined;) {
    port.writeMessage(message, { timeout });
  }
  if (!port.ended) return "the stream did not end";
  port.end();
  return undefined;
}

/** Keeps some messages under way, fewer bytes than both rings hold, so that none waits for ever. */
function drive(port: Port, order: Order): string | undefined {
  const { seed, capacity, count, timeout } = order;
  const outgoing = new Workload(seed, capacity);
  const incoming = new Workload(seed, capacity);
  const storage = new Uint8Array(outgoing.sizeMax);
  const underWay: number[] = [];
  let sum = 0;
  for (let index = 0; index < count || underWay.length > 0;) {
    if (index < count && sum <= capacity) {
      const size = writeNext(port, outgoing, storage, timeout);
      underWay.push(size);
      sum += size;
      index++;
      continue;
    }
    const fault = readNext(port, incoming, storage, timeout);
    if (fault !== undefined) return fault;
    sum -= underWay.shift()!;
  }
  port.end();
  return endFault(port, timeout);
}
