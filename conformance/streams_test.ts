// The track of streams: that a small side of a stream passes it, that every fault of it is caught,
// and what goes over the line.

import { assert, assertEquals } from "@std/assert";
import type { Link } from "./kit/link.ts";
import { fromHex, toHex } from "./reference/bytes.ts";
import { Relay, type Wire } from "./kit/streams/dock.ts";
import { places } from "./kit/streams/stage.ts";
import { catchStreamFaults, checkGoodStream } from "./kit/streams/self_check.ts";
import { schemaOf } from "./kit_fixture.ts";
import { bytes, CLOSED, credit, preface, SMALL, text } from "./stream/builder.ts";
import { StreamPeer } from "./stream/taker.ts";
import { FAULTS, FAULTS_OF_STREAMS } from "./testees/broken/faults.ts";

Deno.test("the small stream without a fault passes, by commands as the schema says", async () => {
  const validate = await schemaOf("protocol/command.schema.json");
  const transports = new Set<unknown>();
  const checked = (link: Link): Link => ({
    ...link,
    send(command) {
      assert(validate(command), JSON.stringify([command, validate.errors?.at(-1)]));
      const { transport } = command as { transport?: string };
      if (transport !== undefined) transports.add(transport);
      return link.send(command);
    },
  });
  const { passed, failed } = await checkGoodStream(checked);
  assertEquals(failed, []);
  assert(passed > 100);
  assertEquals(transports, new Set(["unix", "tcp", "fifo"]));
  const open = { id: 1, command: "open", handle: 1, carrier: "stream", kind: "attach" };
  const rest = { role: "port", largest: 128, window: 256, timeout_ms: 1 };
  assert(validate({ ...open, ...rest, transport: "unix", path: "/a" }));
  assert(!validate({ ...open, ...rest, transport: "unix" }));
  assert(!validate({ ...open, ...rest, transport: "fifo", path: "/a" }));
});

Deno.test("each fault of the small stream is caught by its clause, and names it", async (test) => {
  assert(FAULTS_OF_STREAMS.length >= 20);
  const names = [...FAULTS, ...FAULTS_OF_STREAMS].map(({ name }) => name);
  assertEquals(names.filter((name, index) => names.indexOf(name) !== index), []);
  for await (const { fault, caught } of catchStreamFaults()) {
    await test.step(`${fault.name} [${fault.clause}]: ${caught?.id}`, () => {
      assert(caught !== undefined, `nobody sees that the stream ${fault.about}`);
      const named = caught.broken.includes(fault.clause);
      assert(named, `${caught.id} names ${caught.broken}: ${caught.why}`);
    });
  }
});

Deno.test("StreamPeer: what comes in part waits, and is judged when all is there", () => {
  const peer = new StreamPeer();
  peer.sends(fromHex(preface()));
  const all = fromHex([preface(), credit(0), text("hi", 5), CLOSED].join(""));
  const sent = [...all].flatMap((byte, index) => {
    if (index >= 32 && index < 48) return []; // a credit of nothing is a fault
    return peer.take(Uint8Array.of(byte), false, true).sent;
  });
  assertEquals(sent.map((each) => Object.keys(each)[0]), ["preface", "kind", "close"]);
});

/** A wire that gives these pieces, and keeps what it gets. */
function fake(...pieces: Uint8Array[]) {
  const got: number[] = [];
  let ended = 0;
  const wire: Wire = {
    read: () => Promise.resolve(pieces.shift()),
    write: (given) => Promise.resolve((got.push(...given), true)),
    end: () => Promise.resolve(void ended++),
    kill: () => {},
  };
  return { wire, got, ended: () => ended };
}

Deno.test("Relay does its damage at one byte, however the bytes come", async () => {
  const all = fromHex(preface(SMALL) + bytes(20));
  for (const size of [1, 7, all.length]) {
    const cut = () =>
      Array.from(
        { length: Math.ceil(all.length / size) },
        (_, index) => all.slice(index * size, (index + 1) * size),
      );
    for (const at of [0, 5, all.length - 1]) {
      for (const kind of ["end", "stop", "change", "insert"] as const) {
        const [from, to] = [fake(...cut()), fake()];
        const relay = new Relay(from.wire, to.wire, { damage: { kind, at } });
        await relay.done;
        const what = `${kind} at ${at}, in pieces of ${size}`;
        assertEquals(toHex(Uint8Array.from(to.got.slice(0, at))), toHex(all.slice(0, at)), what);
        if (kind === "end" || kind === "stop") assertEquals(to.got.length, at, what);
        assertEquals(to.ended(), kind === "stop" ? 0 : 1, what);
        if (kind === "change") {
          const differing = to.got.filter((byte, index) => byte !== all[index]).length;
          assertEquals([to.got.length, differing], [all.length, 1], what);
        }
        if (kind === "insert") assert(to.got.length > all.length, what);
      }
    }
  }
});

Deno.test("places are all of them, or the ends and some of a seed", () => {
  assertEquals(places(3, 12, 1), [0, 1, 2]);
  const some = places(1000, 12, 1);
  if (Deno.env.get("MILLRACE_TEST_ALL") === "1") return assertEquals(some.length, 1000);
  assertEquals(some.length, 12);
  assertEquals([some[0], some.at(-1)], [0, 999]);
});
