/** What is no memory, and memory that goes away under a segment. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../error.ts";
import { FanoutReader, FanoutWriter } from "../fanout/fanout.ts";
import { remote, serve } from "../call/call.ts";
import { MailboxReader, MailboxWriter } from "../mailbox/mailbox.ts";
import { Hub } from "../more/hub.ts";
import { claim, peek } from "../more/lend.ts";
import { readMany, writeMany } from "../more/many.ts";
import { waitForPeer, waitForPeerAsync } from "../more/peer.ts";
import { selectAsync } from "../more/select.ts";
import { SharedProperties } from "../property/property.ts";
import { codeOf } from "../testing/fixture.ts";
import { held, until } from "../port/fixture.ts";
import { Port } from "../port/port.ts";
import { receivePort } from "../port/receive.ts";
import { Segment } from "./segment.ts";

// deno-lint-ignore no-explicit-any -- What is wrong has no type.
type Any = any;

/** What `child_process.fork` makes of a message. */
function throughJson(value: unknown): Any {
  return JSON.parse(JSON.stringify(value));
}

Deno.test("a handoff that came through JSON says that memory does not pass so", async () => {
  const port = Port.create();
  const fanout = FanoutWriter.create({ readers: 1 });
  const region = { buffer: port.memory, byteOffset: 0, byteLength: port.segment.size };
  const { port1, port2 } = new MessageChannel();
  const calls: Record<string, () => unknown> = {
    "Port.from": () => Port.from(throughJson(port.handoff())),
    "Port.attach": () => Port.attach(throughJson(port.memory)),
    "Port.create": () => Port.create({ memory: throughJson(port.memory) }),
    "a region": () => Port.attach(throughJson(region)),
    "a view": () => Port.attach(throughJson(new Uint8Array(port.memory as SharedArrayBuffer))),
    "Hub.attach": () => Hub.attach(throughJson(port.memory)),
    "FanoutReader.from": () => FanoutReader.from(throughJson(fanout.handoff(0))),
    "Segment.attach": () => Segment.attach(throughJson(port.memory)),
    "Segment.attachAsync": () => Segment.attachAsync(throughJson(port.memory)),
    "receivePort": () => {
      port1.postMessage(throughJson(port.handoff()));
      return held(receivePort({ source: port2 }));
    },
  };
  for (const [name, call] of Object.entries(calls)) {
    let error: unknown;
    try {
      await call();
    } catch (thrown) {
      error = thrown;
    }
    assert(error instanceof TypeError, `${name}: ${error}`);
    assert(error.message.includes("child_process.fork"), `${name}: ${error.message}`);
  }
  port1.close();
  port2.close();
});

Deno.test("what is no memory is refused", () => {
  for (const memory of [5, null, undefined, "memory", () => {}, [], { byteLength: 4096 }]) {
    const { message } = assertThrows(() => Port.attach(memory as Any), TypeError);
    assert(message.includes("memory must be a SharedArrayBuffer"), message);
  }
});

/** A port on WebAssembly memory that is not shared, and its peer. */
function onWasm(): { memory: WebAssembly.Memory; port: Port<Any>; peer: Port<Any> } {
  const memory = new WebAssembly.Memory({ initial: 20, maximum: 100 });
  const port = Port.create<Any>({ memory });
  return { memory, port, peer: Port.attach<Any>(memory) };
}

const verbs: Record<string, (port: Port<Any>) => unknown> = {
  write: (port) => port.write(1),
  tryWrite: (port) => port.tryWrite(1),
  writeAsync: (port) => port.writeAsync(1),
  writeMany: (port) => writeMany(port, [1, 2]),
  postMessage: (port) => port.postMessage(1),
  read: (port) => port.read({ timeout: 50 }),
  tryRead: (port) => port.tryRead(),
  readAsync: (port) => port.readAsync({ timeout: 50 }),
  readMany: (port) => readMany(port, 2, { timeout: 50 }),
  claim: (port) => claim(port, 8),
  peek: (port) => peek(port, { timeout: 50 }),
  waitForPeer: (port) => waitForPeer(port, { timeout: 50 }),
  waitForPeerAsync: (port) => waitForPeerAsync(port, { timeout: 50 }),
  closed: async (port) => {
    const error = await held(port.closed);
    if (error !== undefined) throw error;
  },
};

Deno.test("growing WebAssembly memory that is not shared is a segment.* error", async () => {
  for (const [name, verb] of Object.entries(verbs)) {
    const { memory, port, peer } = onWasm();
    peer.write("there");
    memory.grow(1);
    let error: unknown;
    try {
      await verb(port);
    } catch (thrown) {
      error = thrown;
    }
    assert(error instanceof MillraceError, `${name}: ${error}`);
    assert(error.message.includes("WebAssembly.Memory"), error.message);
    assertEquals(error.code, "segment.size");
    port.end(); // there is nobody to tell
    port.close();
    peer.close();
    assertEquals(await codeOf(port.readAsync()), "pipe.closed");
  }
});

Deno.test("what waits while WebAssembly memory grows ends with a segment.* error", async () => {
  const { memory, port, peer } = onWasm();
  const heard: unknown[] = [];
  port.onmessage = ({ data }) => heard.push(data);
  port.onclose = ({ error }) => heard.push(error?.code);
  const reading = peer.readAsync();
  peer.postMessage("before");
  await until(() => heard.length === 1);
  memory.grow(1);
  assertEquals(await codeOf(reading), "segment.size");
  await until(() => heard.length === 2);
  assertEquals(heard, ["before", "segment.size"]);
  port.close();
  peer.close();
});

Deno.test("the same for calls, fanouts, mailboxes and properties; all can be closed", async () => {
  const memory = new WebAssembly.Memory({ initial: 40, maximum: 100 });
  const at = (index: number) => ({
    buffer: memory.buffer,
    byteOffset: index << 18,
    byteLength: 1 << 18,
  });
  const capacity = 4096;
  const here = Port.create<Any>({ memory: at(0), capacity });
  const there = Port.attach<Any>(at(0));
  serve(there, { never: () => new Promise(() => {}) });
  const far = remote<{ never(): Promise<void> }>(here);
  const writer = FanoutWriter.create<Any>({ readers: 1, memory: at(1), capacity });
  const reader = FanoutReader.attach<Any>(Segment.attach(at(1)));
  const into = MailboxWriter.attach<Any>(at(2));
  const from = MailboxReader.attach<Any>(at(2));
  const properties = { a: { writer: 0 }, b: { writer: 0 } };
  const group = SharedProperties.create<Any>({ memory: at(3), properties });
  const other = SharedProperties.attach<Any>(at(3));
  group.set("a", 1);
  other.get("a");
  const waiting: Record<string, Promise<unknown>> = {
    "a call": codeOf(held(far.never())),
    "a read of a fanout": codeOf(held(reader.readAsync())),
    "a read of a mailbox": codeOf(held(from.readAsync())),
    "a wait for properties": codeOf(held(other.waitAsync(["b"]))),
  };
  await new Promise((resolve) => setTimeout(resolve, 20));
  memory.grow(1);
  for (const [name, wait] of Object.entries(waiting)) {
    assertEquals(await wait, "segment.size", name);
  }
  const later: Record<string, () => Promise<unknown>> = {
    "a call": () => far.never(),
    "fanout.writeAsync": () => writer.writeAsync(1),
    "fanout.readAsync": () => reader.readAsync(),
    "mailbox.writeAsync": () => into.writeAsync(1),
    "mailbox.readAsync": () => from.readAsync(),
    "properties.waitAsync": () => other.waitAsync(["b"]),
  };
  for (const [name, call] of Object.entries(later)) {
    assertEquals(await codeOf(held(call())), "segment.size", name);
  }
  assertEquals(await selectAsync([here]), here);
  const calls: Record<string, () => unknown> = {
    "a call": () => far.sync.never(),
    "fanout.write": () => writer.write(1),
    "fanout.tryRead": () => reader.tryRead(),
    "mailbox.write": () => into.write(1),
    "mailbox.tryRead": () => from.tryRead(),
    "properties.set": () => group.set("b", 1),
    "properties.get": () => other.get("a"),
  };
  for (const [name, call] of Object.entries(calls)) {
    const error = assertThrows(call, MillraceError);
    assertEquals(error.code, "segment.size", name);
  }
  for (const end of [here, there, writer, reader, into, from, group, other]) end.close();
});
