import { assert, assertEquals, assertThrows } from "@std/assert";
import { messageOf, post, turn, until, WIRES, within } from "./sab_fixture.ts";
import { MWChannel, type WireName } from "./sab_message_port.ts";

/** Both sides in one thread; the native port is not transferred. */
function channel(wire: WireName, queueLimit: number | null = null) {
  const main = new MWChannel("m", 4, queueLimit, { wire });
  const [init] = main.postInit();
  return { main, worker: MWChannel.from(init, queueLimit) };
}

function close({ main, worker }: ReturnType<typeof channel>): void {
  main.close();
  worker.close();
}

Deno.test("MWChannel: its defaults, and wrong arguments", () => {
  const main = new MWChannel("m");
  assertEquals([main.buffer.byteLength, main.queueLimit, main.onmessage], [131_072, null, null]);
  assertEquals([main._sabWriter?.isWriter, main._sabReader], [true, undefined]);
  assert(main._sab === main.buffer);
  assertEquals(new MWChannel("m", 256, 3).buffer.byteLength, 262_144);
  assertEquals(new MWChannel("m", 256, 3).queueLimit, 3);
  assertThrows(() => new MWChannel("x" as "m"), Error, "side");
  assertThrows(() => new MWChannel("w"), Error, "MWChannel.from");
  assertThrows(() => new MWChannel("m", 1, -1), Error, "queueLimit");
  for (const wrong of [null, {}, { type: "SABMessagePort", buffer: main.buffer }]) {
    assertThrows(() => MWChannel.from(wrong), Error, "Not a MWChannel init message");
  }
  const init = { type: "MWChannel", buffer: main.buffer };
  assertThrows(() => MWChannel.from(init), Error, "no port");
  assertThrows(() => MWChannel.from({ ...init, buffer: undefined }), Error, "no buffer");
  main.close();
});

Deno.test("MWChannel: postInit returns or sends memory and port, from the main side", () => {
  const main = new MWChannel("m");
  const [init, transfer] = main.postInit(null, { channel: "events" });
  assertEquals(Object.keys(init), ["type", "buffer", "port", "channel"]);
  assertEquals([init.type, init.channel, transfer.length], ["MWChannel", "events", 1]);
  assert(init.buffer === main.buffer && init.port instanceof MessagePort);
  assert(transfer[0] === init.port);
  const sent: unknown[][] = [];
  main.postInit({ postMessage: (...args: unknown[]) => void sent.push(args) }, { n: 1 });
  assertEquals(sent.map(([message, list]) => [(message as { n: number }).n, list]), [[
    1,
    transfer,
  ]]);
  const worker = MWChannel.from(init, 9);
  assertEquals([worker.queueLimit, worker._sabReader?.isReader], [9, true]);
  assertThrows(() => worker.postInit(), Error, "main side");
  close({ main, worker });
});

for (const wire of WIRES) {
  Deno.test(`MWChannel: the worker reads, the main side is told by events, ${wire}`, async () => {
    const both = channel(wire);
    const { main, worker } = both;
    assertEquals([main._sabWriter?.wire, worker._sabReader?.wire], [wire, wire]);
    await within(Promise.all([main.postMessage(1), main.postMessage(2), main.postMessage(3)]));
    assertEquals([worker.tryPeek(), worker.read(), await worker.asyncRead()], [1, 1, 2]);
    assertEquals([worker.tryRead(), worker.tryRead(), worker.read(0, false, 2)], [3, null, []]);
    const seen: unknown[] = [];
    main.onmessage = ({ data }) => seen.push(data);
    assertEquals(worker.postMessage({ n: 4 }), undefined);
    await until(() => seen.length === 1);
    assertEquals(seen, [{ n: 4 }]);
    for (
      const call of [
        () => main.read(),
        () => main.tryRead(),
        () => main.tryPeek(),
        () => main.asyncRead(),
      ]
    ) assertThrows(call, Error, "worker's side");
    assertThrows(() => worker.onmessage = () => {}, Error, "blocking mode");
    assertEquals(worker.onmessage, null);
    close(both);
  });

  Deno.test(`MWChannel: the modes, and back, ${wire}`, async () => {
    const both = channel(wire);
    const { main, worker } = both;
    assertThrows(() => main.setMode("on" as "blocking"), Error, "mode");
    main.setMode("blocking"); // no change
    await within(main.postMessage("by pipe")!);
    main.setMode("nonblocking");
    // The worker has not switched yet: this message waits for its handler.
    assertEquals(main.postMessage("early"), undefined);
    await turn();
    assertEquals(worker.read(0), "by pipe");
    worker.setMode("nonblocking");
    for (
      const call of [
        () => worker.read(),
        () => worker.tryRead(),
        () => worker.tryPeek(),
        () => worker.asyncRead(),
      ]
    ) assertThrows(call, Error, "nonblocking mode");
    const seen: unknown[] = [];
    worker.onmessage = ({ data }) => seen.push(data);
    main.postMessage("late");
    await until(() => seen.length === 2);
    assertEquals(seen, ["early", "late"]);
    worker.setMode("blocking");
    assertEquals(worker.onmessage, null);
    main.setMode("blocking");
    await within(main.postMessage("by pipe again")!);
    assertEquals(worker.tryRead(), "by pipe again");
    close(both);
  });

  Deno.test(`MWChannel: what is in the pipe at the switch comes first, ${wire}`, async () => {
    const both = channel(wire);
    const { main, worker } = both;
    await post(main._sabWriter!, 1, null, 3, 4);
    worker.setMode("nonblocking");
    assertEquals(worker._pendingDrain, [1, null, 3, 4]);
    main.setMode("nonblocking");
    main.postMessage(5);
    const seen: unknown[] = [];
    worker.onmessage = ({ data }) => {
      seen.push(data);
      if (data === 1) throw new Error("handler");
      if (data === null) worker.onmessage = null;
    };
    await turn(); // the native port delivers nothing to a handler that was removed
    assertEquals([seen, worker._pendingDrain, worker.onmessage], [[1, null], [3, 4], null]);
    worker.onmessage = ({ data }) => seen.push(data);
    await until(() => seen.length === 5);
    assertEquals(seen, [1, null, 3, 4, 5]);
    close(both);
  });

  Deno.test(`MWChannel: what nobody handled comes first in the next reads, ${wire}`, async () => {
    const both = channel(wire);
    const { main, worker } = both;
    await post(main._sabWriter!, 1, 2);
    worker.setMode("nonblocking");
    await post(main._sabWriter!, 3);
    worker.setMode("blocking");
    assertEquals([worker.read(), worker.read(), worker.read(0)], [1, 2, 3]);
    close(both);
  });

  Deno.test(`MWChannel: queueLimit and onQueueOverflow, ${wire}`, async () => {
    const both = channel(wire, 3);
    const { main, worker } = both;
    await post(main._sabWriter!, 1, 2, 3, 4);
    assertEquals(worker.tryRead(9), [4, 3, 2]);
    const seen: unknown[][] = [];
    worker.onQueueOverflow = (queue) => void seen.push([...queue]);
    assert(worker.onQueueOverflow === worker._sabReader!.onQueueOverflow);
    await post(main._sabWriter!, 5, 6, 7);
    worker.setMode("nonblocking");
    assertEquals(worker._pendingDrain, [5, 6, 7]);
    worker.queueLimit = 1;
    assertEquals([worker.queueLimit, worker._sabReader!.queueLimit], [1, 1]);
    assertEquals([worker._pendingDrain, seen.splice(0)], [[7], [[5, 6, 7]]]);
    worker.setMode("blocking");
    worker.queueLimit = null;
    await post(main._sabWriter!, 8, 9);
    assertEquals(worker.tryPeek(), 7);
    worker.queueLimit = 2;
    main.queueLimit = null;
    main.onQueueOverflow = null;
    assertEquals([main.queueLimit, main.onQueueOverflow], [null, null]);
    assertThrows(() => main.queueLimit = 0.5, Error, "queueLimit");
    close(both);
  });

  Deno.test(`MWChannel: close ends the pipe, and the posting in every mode, ${wire}`, async () => {
    const both = channel(wire);
    const { main, worker } = both;
    const read = worker.asyncRead();
    main.close();
    main.close();
    assertEquals(await messageOf(() => read), "SABPipe disposed");
    assertThrows(() => worker.read(), Error, "SABPipe disposed");
    assertThrows(() => main.postMessage(1), Error, "SABPipe disposed");
    main.setMode("nonblocking");
    assertThrows(() => main.postMessage(1), Error, "closed");
    worker.close();
    assertThrows(() => worker.postMessage(1), Error, "closed");
  });
}
