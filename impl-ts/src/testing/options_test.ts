/** What is no object where options are expected: `read(500)` must not wait for ever. */

import { assert, assertThrows } from "@std/assert";
import { remote } from "../call/call.ts";
import { json } from "../codec/json.ts";
import { FanoutReader, FanoutWriter } from "../fanout/fanout.ts";
import { MailboxReader, MailboxWriter } from "../mailbox/mailbox.ts";
import { Segment } from "../memory/segment.ts";
import { Hub, hubGeometry } from "../more/hub.ts";
import { select, selectAsync } from "../more/select.ts";
import { supervise } from "../more/supervise.ts";
import { claim, peek, tryClaim } from "../more/lend.ts";
import { readMany, readManyAsync, writeMany } from "../more/many.ts";
import { waitForPeer, waitForPeerAsync } from "../more/peer.ts";
import {
  readInto,
  readMessage,
  readMessageAsync,
  tryWriteMessage,
  writeMessage,
  writeMessageAsync,
} from "../more/raw.ts";
import { Reader, Writer } from "../pipe/ends.ts";
import { Pool } from "../pool/pool.ts";
import { work } from "../pool/work.ts";
import { portGeometry, portMemory } from "../port/options.ts";
import { Port } from "../port/port.ts";
import { receivePort } from "../port/receive.ts";
import { PropertyReader, PropertyWriter, SharedProperties } from "../property/property.ts";
import { StreamLink } from "../stream/link.ts";
import { openStream } from "../stream/stream.ts";

// deno-lint-ignore no-explicit-any -- What is wrong has no type.
type Any = any;

const WRONG: Any[] = [500, 0, "500", true, 5n, Symbol("500"), () => 500];

const channels = [{ writer: 0, reader: 1, capacity: 4096 }];
const blank = () => Segment.allocate({ endpoints: 2, channels });
const bytes = new Uint8Array(8);
const message = { payload: bytes };

/** Calls that take options, by what they are called on. `undefined` is no mistake. */
const verbs: Record<string, (wrong: Any) => unknown> = {};

function add(name: string, call: (wrong: Any) => unknown): void {
  verbs[name] = call;
}

const port = Port.create<Any>();
const peer = Port.attach<Any>(port.memory);
const pipe = blank();
const [writer, reader] = [Writer.attach<Any>(pipe), Reader.attach<Any>(pipe)];
/** Something is there to be read: whoever forgets to look at its options takes it. */
const fill = () => {
  for (let n = 0; n < 10; n++) {
    tryWriteMessage(peer, message);
    tryWriteMessage(writer, message);
  }
};
for (const [kind, on] of Object.entries({ port, reader }) as [string, Any][]) {
  add(`${kind}.read`, (wrong) => on.read(wrong));
  add(`${kind}.readAsync`, (wrong) => on.readAsync(wrong));
  add(`readMany of ${kind}`, (wrong) => readMany(on, 3, wrong));
  add(`readManyAsync of ${kind}`, (wrong) => readManyAsync(on, 3, wrong));
  add(`readMessage of ${kind}`, (wrong) => readMessage(on, wrong));
  add(`readMessageAsync of ${kind}`, (wrong) => readMessageAsync(on, wrong));
  add(`readInto of ${kind}`, (wrong) => readInto(on, new Uint8Array(100), wrong));
  add(`peek of ${kind}`, (wrong) => peek(on, wrong));
}
for (const [kind, on] of Object.entries({ port, writer }) as [string, Any][]) {
  add(`${kind}.write`, (wrong) => on.write(1, wrong));
  add(`${kind}.writeAsync`, (wrong) => on.writeAsync(1, wrong));
  add(`writeMany of ${kind}`, (wrong) => writeMany(on, [1], wrong));
  add(`writeMessage of ${kind}`, (wrong) => writeMessage(on, message, wrong));
  add(`writeMessageAsync of ${kind}`, (wrong) => writeMessageAsync(on, message, wrong));
  add(`claim of ${kind}`, (wrong) => claim(on, 8, wrong));
  add(`tryClaim of ${kind}`, (wrong) => tryClaim(on, 8, wrong));
  add(`${kind}.endAsync`, (wrong) => on.endAsync(wrong));
}
add("port.postMessage", (wrong) => port.postMessage(1, wrong));
add("waitForPeer", (wrong) => waitForPeer(port, wrong));
add("waitForPeerAsync", (wrong) => waitForPeerAsync(port, wrong));

const memory = portMemory();
const handoff = Port.create().handoff();
const formatted = Port.create().memory;
add("Port.create", (wrong) => Port.create(wrong));
add("Port.attach", (wrong) => Port.attach(formatted, wrong));
add("Port.from", (wrong) => Port.from(handoff, wrong));
add("portGeometry", (wrong) => portGeometry(wrong));
add("portMemory", (wrong) => portMemory(wrong));
add("receivePort", (wrong) => receivePort(wrong));
add("Segment.create", (wrong) => Segment.create(memory, portGeometry(), wrong));
add("Segment.attach", (wrong) => Segment.attach(formatted, wrong));
add("Segment.attachAsync", (wrong) => Segment.attachAsync(formatted, wrong));
add("Reader.attach", (wrong) => Reader.attach(blank(), wrong));
add("Writer.attach", (wrong) => Writer.attach(blank(), wrong));

const hub = Hub.create<Any>(2);
add("hub.select", (wrong) => hub.select(wrong));
add("hub.selectAsync", (wrong) => hub.selectAsync(wrong));
add("Hub.create", (wrong) => Hub.create(2, wrong));
add("Hub.attach", (wrong) => Hub.attach(formatted, wrong));
add("Hub.attachAsync", (wrong) => Hub.attachAsync(formatted, wrong));
add("hubGeometry", (wrong) => hubGeometry(2, wrong));
add("select", (wrong) => select([peer], wrong));
add("selectAsync", (wrong) => selectAsync([peer], wrong));
add("supervise", (wrong) => supervise({ terminate() {} }, port, wrong));

add("remote.with", (wrong) => remote(port).with(wrong));
const idle = { least: 0, most: 1 };
const pool = new Pool<Any>("data:text/javascript,", idle) as Any;
add("Pool", (wrong) => new Pool("data:text/javascript,", wrong));
add("pool.run", (wrong) => pool.run(1, wrong));
add("pool.map", (wrong) => pool.map([1], wrong).next());
add("work", (wrong) => work(() => 1, wrong));
add("openStream", (wrong) => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  return openStream({ readable, writable }, wrong);
});
add("json", (wrong) => json(wrong));

const fanout = FanoutWriter.create<Any>({ readers: 2 });
const member = FanoutReader.from<Any>(fanout.handoff(0));
add("fanout.write", (wrong) => fanout.write(1, wrong));
add("fanout.writeAsync", (wrong) => fanout.writeAsync(1, wrong));
add("fanout.writeMessage", (wrong) => fanout.writeMessage(message, wrong));
add("fanout.read", (wrong) => member.read(wrong));
add("fanout.readAsync", (wrong) => member.readAsync(wrong));
add("fanout.readMessage", (wrong) => member.readMessage(wrong));
add("fanout.readInto", (wrong) => member.readInto(bytes, wrong));
add("FanoutWriter.create", (wrong) => FanoutWriter.create(wrong));
add("FanoutWriter.attach", (wrong) => FanoutWriter.attach(fanout.segment, wrong));
add("FanoutReader.attach", (wrong) => FanoutReader.attach(fanout.segment, wrong));
add("FanoutReader.from", (wrong) => FanoutReader.from(fanout.handoff(1), wrong));

const box = new SharedArrayBuffer(256);
const into = MailboxWriter.attach<Any>(box);
const from = MailboxReader.attach<Any>(box);
add("mailbox.write", (wrong) => into.write(1, wrong));
add("mailbox.writeMany", (wrong) => into.writeMany([1], wrong));
add("mailbox.writeAsync", (wrong) => into.writeAsync(1, wrong));
add("mailbox.writeManyAsync", (wrong) => into.writeManyAsync([1], wrong));
add("mailbox.read", (wrong) => from.read(wrong));
add("mailbox.readAsync", (wrong) => from.readAsync(wrong));
add("MailboxWriter.attach", (wrong) => MailboxWriter.attach(new SharedArrayBuffer(256), wrong));
add("MailboxReader.attach", (wrong) => MailboxReader.attach(new SharedArrayBuffer(256), wrong));

const properties = { a: { writer: 0 } };
const group = SharedProperties.create<Any>({ properties });
const other = Segment.attach(SharedProperties.create<Any>({ properties }).memory);
const value = PropertyReader.attach(Segment.attach(group.memory), { endpoint: 1 });
add("property.wait", (wrong) => value.wait(wrong));
add("property.waitAsync", (wrong) => value.waitAsync(wrong));
add("property.watch", (wrong) => value.watch(wrong).next());
add("properties.wait", (wrong) => group.wait(["a"], wrong));
add("properties.waitAsync", (wrong) => group.waitAsync(["a"], wrong));
add("properties.watch", (wrong) => group.watch(["a"], wrong).next());
add("PropertyReader.attach", (wrong) => PropertyReader.attach(other, wrong));
add("PropertyWriter.attach", (wrong) => PropertyWriter.attach(other, wrong));
add("SharedProperties.create", (wrong) => SharedProperties.create(wrong));
add("SharedProperties.attach", (wrong) => SharedProperties.attach(other.memory, wrong));

for (const [name, call] of Object.entries(verbs)) {
  Deno.test(`options that are no object are refused: ${name}`, async () => {
    for (const wrong of WRONG) {
      fill();
      let thrown: unknown;
      try {
        const result = call(wrong);
        const late = new Promise((_, reject) => setTimeout(reject, 5000, "it waits"));
        await Promise.race([result, late]);
      } catch (error) {
        thrown = error;
      }
      assert(thrown instanceof TypeError, `${String(wrong)}: ${thrown}`);
      assert(thrown.message.includes("{ timeout: 500 }"), thrown.message);
    }
  });
}

Deno.test("a capacity that is no power of two is refused in these words", () => {
  const calls: Record<string, (capacity: Any) => unknown> = {
    "Port.create": (capacity) => Port.create({ capacity }),
    "Port.create, one way": (capacity) => Port.create({ capacity: [4096, capacity] }),
    "portMemory": (capacity) => portMemory({ capacity }),
    "Hub.create": (capacity) => Hub.create(2, { capacity }),
    "Segment.allocate": (capacity) => {
      const channels = [{ writer: 0, reader: 1, capacity }];
      return Segment.allocate({ endpoints: 2, channels });
    },
    "FanoutWriter.create": (capacity) => FanoutWriter.create({ readers: 1, capacity }),
    "Pool": (capacity) => new Pool("data:text/javascript,", { ...idle, capacity }),
    "StreamLink": (capacity) => new StreamLink({ capacity }),
  };
  for (const [name, call] of Object.entries(calls)) {
    for (const capacity of [1000, 128, 0, -1, NaN, 2 ** 31, 1024.5]) {
      const { message } = assertThrows(() => call(capacity), RangeError);
      assert(message.startsWith("capacity must be a power of two"), `${name}: ${message}`);
      assert(message.includes(`${capacity}`), message);
    }
  }
});
