/**
 * The TypeScript implementation as a host that views the memory of guests under wasmtime, in a
 * worker of Deno. It rings them through an instance of its own, and itself polls, for nobody can
 * wake it.
 *
 * @module
 */

import { Guest, type GuestMemory } from "../../../impl-zig/wasmtime_fixture.ts";
import { type Mechanism, pollingMechanism } from "../../../impl-ts/src/mod.ts";
import { layout } from "../../../impl-ts/src/memory/layout.ts";
import { scope } from "../../../tools/worker_scope.ts";
import { open, typescript } from "../../testees/typescript/adapter.ts";
import { Server } from "../../testees/server.ts";
import { Engine } from "./wasmtime_engine.ts";

/** What is posted first: where the engine is, in this process. */
export interface Library {
  library: string;
  engine: bigint;
  module: bigint;
}

/** What is posted in place of memory. */
export interface Address {
  /** Its name. */
  memory: string;
  /** What wasmtime knows it by, and where it lies. */
  pointer: bigint;
  base: bigint;
  length: number;
  offset: number;
  size: number;
  /** Where the stack of an instance may lie that only rings. */
  stack: number;
}

const at = (address: bigint) => Deno.UnsafePointer.create(address);

const polling = pollingMechanism();
let library: Library | undefined;
let memory: GuestMemory | undefined;
let ringer: Guest | undefined;

const mechanism: Mechanism = {
  rings: layout.WAKE_MECHANISM_WASMTIME,
  sleeps: 0,
  blocks: true,
  sleep: (...given) => polling.sleep(...given),
  sleepAsync: () => undefined,
  notify: (words, index) => void ringer!.call("testee_notify", words.byteOffset + 4 * index),
};

const { hello } = typescript;
const server = new Server({
  ...typescript,
  hello: { ...hello, name: `${hello.name}, as a host of wasmtime`, carriers: ["shared"] },
  open: (bytes, opening) => open(bytes, opening, mechanism),
});

function share({ memory: name, offset, size, ...place }: Address): void {
  if (place.pointer !== Deno.UnsafePointer.value(memory?.pointer ?? null)) {
    const buffer = Deno.UnsafePointerView.getArrayBuffer(at(place.base)!, place.length);
    memory = { pointer: at(place.pointer), buffer };
    const engine = new Engine(library!.library, at(library!.engine));
    ringer = new Guest(engine.api(), at(library!.module), memory, place.stack);
  }
  server.share({ memory: name, buffer: memory!.buffer, offset, size });
}

scope.onmessage = ({ data }) => {
  if ("library" in data) library = data;
  else if ("pointer" in data) share(data);
  else {
    server.answer(data).then((reply) => scope.postMessage(reply), (error) => {
      setTimeout(() => {
        throw error;
      });
    });
  }
};
scope.postMessage({ ready: true });
