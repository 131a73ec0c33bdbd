/**
 * Our port between TypeScript and Zig in WebAssembly, two workers on one memory. Echoes are
 * answered by a loop in Zig; what comes one way is read through `wasm.ts`.
 *
 * @module
 */
import { Port, portGeometry, segmentSize, statsOf } from "../../../impl-ts/src/mod.ts";
import { readInto } from "../../../impl-ts/src/more/raw.ts";
import { loadMillrace, type WasmPort } from "../../../impl-zig/wasm.ts";
import type { Scenario } from "../../contract.ts";
import {
  type BlockingEnd,
  both,
  type Order,
  PATIENCE_MS,
  type Peer,
  type Report,
} from "../peer.ts";
import { readStamp, stamp, valuesOf } from "../payload.ts";
import { portOptions } from "./millrace.ts";

/** What both threads get. */
interface Gear {
  readonly memory: WebAssembly.Memory;
  /** Of Zig's end. */
  readonly module: WebAssembly.Module;
  readonly address: number;
  readonly size: number;
}

/** What `bench/demo/worker.zig` exports. */
interface Echo {
  serve(address: number, size: number, spin_us: number): number;
}

const PAGE = 65_536;
/** Memory below the segment: for the module's data, and for what `wasm.ts` sets aside. */
const PAGES_BELOW = 128;
const WAIT = { timeout: PATIENCE_MS };
const CODEC_JSON = 2;
const SPIN_US = 50;

const peer: Peer = {
  decline({ name, ends, size, direction }) {
    if (ends !== "workers") return "Zig's end blocks: measured between workers";
    if (direction !== undefined && direction !== "down") return "the Zig loop only answers";
    if (name === "dropbox" || name === "idle" || name === "memory") return "measured elsewhere";
    return size > 1 << 20 ? "the Zig end is made for 1 MiB" : undefined;
  },
  async prepare(scenario, place) {
    const { capacity = 0 } = portOptions(scenario);
    const size = segmentSize(portGeometry({ capacity }));
    const pages = PAGES_BELOW + Math.ceil(size / PAGE);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const name = echoes(scenario) ? "demo_worker" : "millrace";
    const module =
      await (modules[name] ??= place.readWasm(name).then((bytes) => WebAssembly.compile(bytes)));
    const value: Gear = { memory, module, address: PAGES_BELOW * PAGE, size };
    return both(value);
  },
  async open({ gear, role, scenario }: Order) {
    const { memory, module, address, size } = gear as Gear;
    if (role === "a") {
      const bytes = new Uint8Array(memory.buffer, address, size);
      return scriptEnd(Port.create({ ...portOptions(scenario), memory: bytes }), scenario);
    }
    const { port } = await attach(memory, module, { address, size }, scenario);
    return zigEnd(port, scenario);
  },
  play({ gear, role, scenario }: Order) {
    if (role === "a" || !echoes(scenario)) return undefined;
    return serve(gear as Gear, scenario.wait === "park" ? 0 : SPIN_US);
  },
};

/** The peer of this file. */
export const peers = { "millrace-zig": peer };

/** Compiled once: a new module would begin anew with the engine's slower code. */
const modules: Record<string, Promise<WebAssembly.Module>> = {};

function echoes({ name }: Scenario): boolean {
  return name === "echo" || name === "calls";
}

async function attach(
  memory: WebAssembly.Memory,
  module: WebAssembly.Module,
  segment: { address: number; size: number },
  { wait, size }: Scenario,
): Promise<{ port: WasmPort }> {
  const region = { address: 16 * PAGE, size: (PAGES_BELOW - 16) * PAGE };
  const millrace = await loadMillrace(module, { memory, region });
  const port = millrace.attachPort(segment, {
    endpoint: 1,
    messageSize: Math.max(size, 1024),
    spinUs: wait === "park" ? 0 : SPIN_US,
    timeout: PATIENCE_MS,
  });
  return { port };
}

async function serve({ memory, module, address, size }: Gear, spinUs: number): Promise<Report> {
  const { exports } = await WebAssembly.instantiate(module, {
    env: { memory },
    millrace: { now_us: () => performance.now() * 1000 },
  });
  const reason = (exports as unknown as Echo).serve(address, size, spinUs);
  if (reason !== 0) throw new Error(`The Zig end stopped with reason ${reason}`);
  return {};
}

/** TypeScript's end; it ends its stream, which ends the loop in Zig. */
function scriptEnd(port: Port, scenario: Scenario): BlockingEnd {
  const values = valuesOf(scenario);
  const incoming = scenario.format === "bytes" ? new Uint8Array(scenario.size) : undefined;
  return {
    kind: "blocking",
    send: (number) => port.write(values.with(number), WAIT),
    receive() {
      if (incoming === undefined) return values.numberOf(port.read(WAIT));
      const size = readInto(port, incoming, WAIT);
      if (size !== incoming.length) throw new Error(`A message of ${size} bytes came`);
      return readStamp(incoming, 0, size);
    },
    sleeps: () => statsOf(port).parks,
    close() {
      port.end();
      port.read(WAIT);
      port.close();
    },
  };
}

/** Zig's end, driven from JavaScript. */
function zigEnd(port: WasmPort, scenario: Scenario): BlockingEnd {
  const values = valuesOf(scenario);
  const { format, size } = scenario;
  const outgoing = new Uint8Array(size);
  return {
    kind: "blocking",
    send(number) {
      if (format === "json") return port.writeJson(values.with(number), WAIT);
      stamp(outgoing, 0, size, number);
      port.write(outgoing, WAIT);
    },
    receive() {
      if (format === "json") return values.numberOf(port.readJson(WAIT));
      const lent = port.read({ ...WAIT });
      if (lent === undefined) throw new Error("No message came");
      if (lent.codec === CODEC_JSON) throw new Error("JSON came in place of bytes");
      return readStamp(lent.payload, 0, lent.payload.length);
    },
    sleeps: () => port.stats().parks,
    close() {
      port.end();
      port.close();
    },
  };
}
