/**
 * What the calls of `sab-message-port` answer: `null` for nothing, arrays with the newest first,
 * errors for what an end cannot do. The expectations are what the original answers, as of 1.0.4.
 */
import { MWChannel, SABMessagePort, SABPipe } from "millrace/sab-message-port";
import { assertEquals, type Stage, WAIT, within } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  await playSizes();
  await playPipe();
  await playPort();
  await playChannel();
  await playLimit();
  await playWorker(stage);
}

/** What a call returns, or that it throws, and whether it says that the pipe is disposed. */
async function answerOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return String(error).includes("disposed") ? "disposed" : "throws";
  }
}

/**
 * The memory has exactly the size that is asked for, also if no ring fits it, and carries messages.
 */
async function playSizes(): Promise<void> {
  for (const size of [undefined, 33, 36, 64, 1000, 1280, 1408, 4096, 98_304, 100_000, 262_144]) {
    const writer = new SABPipe("w", size);
    const reader = new SABPipe("r", writer._sab!);
    const bytes = size ?? 131_072;
    assertEquals(writer._sab!.byteLength, bytes);
    assertEquals([writer.u8!.length, writer.i32!.length], [bytes, bytes >> 2]);
    assertEquals([writer.maxChunk, reader.maxChunk], [bytes - 32, bytes - 32]);
    await playOneWay(writer, reader);
    writer.destroy();
  }
  for (const size of [undefined, 72 / 1024, 1, 2.5, 3, 64, 96, 128, 512]) {
    const here = new SABMessagePort("a", size);
    const there = SABMessagePort.from(here.postInit()[0]);
    const bytes = (size ?? 256) * 1024;
    assertEquals([here.buffer.byteLength, there.buffer.byteLength], [bytes, bytes]);
    await playOneWay(here, there);
    await playOneWay(there, here);
    here.close();
  }
  for (const size of [undefined, 1, 3, 256]) {
    const main = new MWChannel("m", size);
    const worker = MWChannel.from(main.postInit()[0]);
    const bytes = (size ?? 128) * 1024;
    assertEquals([main.buffer.byteLength, worker.buffer.byteLength], [bytes, bytes]);
    main.close();
    worker.close();
  }
}

/** A burst of more than the memory may hold at once. */
async function playOneWay(
  from: Pick<SABPipe, "postMessage">,
  to: Pick<SABPipe, "asyncRead">,
): Promise<void> {
  const values = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(index));
  for (const value of values) from.postMessage(value);
  for (const value of values) assertEquals(await within(to.asyncRead()), value);
}

async function playPipe(): Promise<void> {
  const writer = new SABPipe("w", 4096);
  const reader = new SABPipe("r", writer._sab!);
  assertEquals([writer.isWriter, writer.isReader, reader.isReader], [true, false, true]);
  assertEquals(writer.isDisposed(), false);
  assertEquals(await answerOf(() => new SABPipe("x" as "w")), "throws");
  for (const call of ["read", "tryRead", "tryPeek", "asyncRead"] as const) {
    assertEquals(await answerOf(() => writer[call]()), "throws");
  }
  assertEquals(await answerOf(() => writer.onmessage = () => {}), "throws");
  assertEquals(await answerOf(() => reader.postMessage(1)), "throws");

  assertEquals([reader.tryRead(), reader.tryRead(2), reader.tryPeek()], [null, [], null]);
  assertEquals([reader.read(0, false), reader.read(0, false, 2)], [null, []]);
  const posted = ["a", "b", { c: [null, 1.5] }, "d"].map((value) => writer.postMessage(value));
  const first = await within(reader.asyncRead());
  assertEquals(await within(Promise.all(posted)), [undefined, undefined, undefined, undefined]);
  assertEquals([first, reader.tryPeek(), reader.tryRead()], ["a", "b", "b"]);
  assertEquals([reader.tryRead(9), reader.tryRead()], [["d", { c: [null, 1.5] }], null]);

  const long = "é".repeat(9000); // cut into parts, on either wire
  const sent = writer.postMessage(long);
  assertEquals(await within(reader.asyncRead()), long);
  await within(sent);

  // After all else: in the original, a wait that was given up takes the next message's wake.
  assertEquals([await reader.asyncRead(1), await reader.asyncRead(1, 2)], [null, []]);
  writer.destroy();
  writer.destroy();
  assertEquals([writer.isDisposed(), writer._sab, writer.i32, writer.u8], [true, null, null, null]);
  assertEquals([reader.isDisposed(), await answerOf(() => reader.tryRead())], [true, "disposed"]);
  for (const call of ["read", "tryRead", "tryPeek", "asyncRead"] as const) {
    assertEquals(await answerOf(() => reader[call]()), "disposed");
  }
  assertEquals(await answerOf(() => writer.postMessage(1)), "disposed");
}

async function playPort(): Promise<void> {
  const here = new SABMessagePort();
  const [init, transfer] = here.postInit(null, { name: "log" });
  assertEquals([init.type, init.name, transfer.length], ["SABMessagePort", "log", 1]);
  assertEquals(init.buffer === here.buffer && transfer[0] === here.buffer, true);
  assertEquals(await answerOf(() => SABMessagePort.from({ type: "x" } as never)), "throws");
  assertEquals(await answerOf(() => new SABMessagePort("c" as "a")), "throws");
  const there = SABMessagePort.from(init);

  // What came before somebody listens is heard first, and in order.
  here.postMessage(1);
  here.postMessage(2);
  const heard: unknown[] = [];
  const all = new Promise<void>((resolve) => {
    there.onmessage = ({ data }) => {
      if (heard.push(data) === 4) resolve();
      if (data === 2) throw new Error("which the original swallows");
    };
  });
  here.postMessage(3);
  here.postMessage(4);
  await within(all);
  assertEquals(heard, [1, 2, 3, 4]);
  for (const call of ["read", "tryRead", "tryPeek", "asyncRead"] as const) {
    assertEquals(await answerOf(() => there[call]()), "throws");
  }
  there.onmessage = null;
  assertEquals(there.onmessage, null);
  here.close();
  assertEquals(await answerOf(() => there.tryRead()), "disposed");
  assertEquals(await answerOf(() => here.postMessage(1)), "disposed");
}

/** Both ends of a channel on one thread: blocking, and by the native port. */
async function playChannel(): Promise<void> {
  const main = new MWChannel("m");
  const [init, transfer] = main.postInit(null, { name: "log" });
  assertEquals([init.type, init.name, transfer.length], ["MWChannel", "log", 1]);
  assertEquals(await answerOf(() => MWChannel.from({ type: "x" } as never)), "throws");
  assertEquals(await answerOf(() => new MWChannel("c" as "m")), "throws");
  const worker = MWChannel.from(init);
  assertEquals(await answerOf(() => worker.onmessage = () => {}), "throws");
  assertEquals(await answerOf(() => main.tryRead()), "throws");
  assertEquals(await answerOf(() => worker.postInit()), "throws");
  assertEquals(await answerOf(() => worker.setMode("x" as "blocking")), "throws");
  assertEquals([worker.tryRead(), worker.tryRead(2), worker.tryPeek()], [null, [], null]);

  await within(main.postMessage("down")!);
  assertEquals([worker.tryPeek(), worker.tryRead()], ["down", "down"]);
  const up = new Promise((resolve) => main.onmessage = ({ data }) => resolve(data));
  assertEquals(worker.postMessage("up"), undefined);
  assertEquals(await within(up), "up");

  // What was sent for a worker that blocks is the first that it hears when it does so no more.
  main.postMessage("first");
  await within(main.postMessage("second")!);
  worker.setMode("nonblocking");
  main.setMode("nonblocking");
  assertEquals(main.postMessage("third"), undefined);
  assertEquals(await answerOf(() => worker.tryRead()), "throws");
  const heard: unknown[] = [];
  const all = new Promise<void>((resolve) => {
    worker.onmessage = ({ data }) => void (heard.push(data) === 3 && resolve());
  });
  await within(all);
  assertEquals(heard, ["first", "second", "third"]);
  main.setMode("blocking");
  worker.setMode("blocking");
  assertEquals(worker.onmessage, null);
  main.close();
  assertEquals(await answerOf(() => worker.tryRead()), "disposed");
  worker.close();
}

/** The newest of what has been posted stay, and whoever listens sees all before. */
async function playLimit(): Promise<void> {
  const writer = new SABPipe("w", 64);
  const reader = new SABPipe("r", writer._sab!);
  for (const limit of [-1, 1.5, "2"]) {
    assertEquals(await answerOf(() => reader.queueLimit = limit as number), "throws");
  }
  assertEquals([reader.queueLimit, reader.onQueueOverflow], [null, null]);
  reader.queueLimit = 2;
  let seen: unknown[] = [];
  reader.onQueueOverflow = (queue) => seen = [...queue];
  for (const value of [1, 2, 3]) writer.postMessage(value);
  assertEquals(await within(reader.asyncRead(WAIT.timeout, 9)), [3, 2]);
  assertEquals(seen, [3, 2, 1]);
  writer.destroy();
}

/** What only a thread that may block can ask. */
async function playWorker(stage: Stage): Promise<void> {
  const worker = stage.start();
  const port = new SABMessagePort("a", 64);
  worker.postMessage(port.postInit()[0]);
  assertEquals(await within(port.asyncRead()), [null, []]);
  for (const value of [1, 2, 3]) port.postMessage(value);
  assertEquals(await within(port.asyncRead()), [1, [3, 2]]);
  port.close();
  assertEquals(await within(worker.result), "disposed");
}
