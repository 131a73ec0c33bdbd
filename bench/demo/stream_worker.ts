// The TypeScript side of the demo: streams the source to the Zig worker and takes it back, then
// measures. It blocks all the time; nothing here goes back to the event loop but the rival's echo.

import { createHash } from "node:crypto";
import { Port, statsOf } from "../../impl-ts/src/mod.ts";
import { claim, finish, publish } from "../../impl-ts/src/more/lend.ts";
import { readInto, readMessage, writeMessage } from "../../impl-ts/src/more/raw.ts";
import { scope } from "../../tools/worker_scope.ts";
import { CAPACITY, type Latency, type Note, PROGRESS, SizePlan, SourceReader } from "./protocol.ts";
import { type StreamOrder, type StreamReport, TAG, type Transfer } from "./protocol.ts";
import { percentile } from "./terminal.ts";

const MIB = 1 << 20;
const CODEC_BYTES = 0;
/** Bytes under way at most, so that what is on its way back always has room. */
const WINDOW = CAPACITY;
/** A frame of half the ring, header included, is the largest that can be claimed. */
const CLAIM_MAX = CAPACITY / 2 - 16;
const PATIENCE = { timeout: 30_000 };
const WARM_UP_COUNT = 2_000;
const ECHO_COUNT = 20_000;
const LARGE_COUNT = 512;
/** A message as programs send them: 118 bytes as JSON. */
const QUESTION = {
  id: 1234567,
  kind: "move",
  from: { x: 12.25, y: -7.5 },
  to: { x: 14.75, y: 3.125 },
  name: "a millrace whee",
  ok: true,
};

scope.onmessage = async ({ data }: MessageEvent<StreamOrder>) => {
  let note: Note;
  try {
    note = await run(data);
  } catch (error) {
    note = {
      kind: "failed",
      message: (error as Error).message,
      usage: error instanceof RangeError,
    };
  }
  scope.postMessage(note);
};

async function run(order: StreamOrder): Promise<StreamReport> {
  const memory = new Uint8Array(order.memory.buffer, order.segmentOffset, order.segmentSize);
  const port = Port.create({ memory, capacity: CAPACITY, side: "a" });
  greet(port);
  const streamed = stream(port, order);
  Atomics.store(new Int32Array(order.progress), PROGRESS.streamed, 1);
  const toZig = sendLarge(port);
  const fromZig = receiveLarge(port);
  const echo = measureEcho(port);
  // Of the whole run, as the Zig worker counts too.
  const { wakes, wakesElided, parks } = statsOf(port);
  port.end();
  if (port.read(PATIENCE) !== undefined || !port.ended) throw new Error("The stream did not end");
  port.close();
  return {
    kind: "report",
    ...streamed,
    toZig,
    fromZig,
    echo,
    rivalEcho: await measureRival(order.rival),
    wakes,
    wakesElided,
    parks,
  };
}

/** Waits until the Zig worker is there, so that its start is not measured. */
function greet(port: Port): void {
  writeMessage(port, { payload: new Uint8Array(1), codec: CODEC_BYTES, tag: TAG.echo }, PATIENCE);
  if (readMessage(port, PATIENCE) === undefined) throw new Error("The Zig worker did not come");
}

/** Sends the whole source and takes it back, with both digests on the way. */
function stream(
  port: Port,
  order: StreamOrder,
): Pick<StreamReport, "sentDigest" | "receivedDigest" | "stream"> {
  const { source, corrupt, progress } = order;
  using reader = new SourceReader(source);
  const sent = createHash("sha256");
  const received = createHash("sha256");
  const sizes = new SizePlan();
  const piece = new Uint8Array(MIB);
  const back = new Uint8Array(MIB);
  const words = new Int32Array(progress);
  let messages = 0;
  let sentSize = 0;
  let backSize = 0;

  const takeBack = (underWay: number) => {
    while (sentSize - backSize > underWay) {
      const size = readInto(port, back, PATIENCE);
      if (size === undefined) throw new Error("The Zig worker does not answer");
      received.update(back.subarray(0, size));
      backSize += size;
      Atomics.store(words, PROGRESS.kib, Math.floor(backSize / 1024));
    }
  };

  const start = performance.now();
  while (true) {
    const inBurst = sizes.inBurst;
    const doomed = messages + 1 === corrupt;
    const planned = sizes.next();
    const size = reader.read(piece.subarray(0, doomed ? Math.min(planned, CLAIM_MAX) : planned));
    if (size === 0) break;
    const payload = piece.subarray(0, size);
    sent.update(payload);
    messages++;
    sentSize += size;
    if (inBurst || doomed) place(port, payload, doomed);
    else writeMessage(port, { payload, codec: CODEC_BYTES, tag: TAG.echo }, PATIENCE);
    // Everything placed in a burst becomes visible by this one store.
    if (!sizes.inBurst) publish(port);
    takeBack(WINDOW);
  }
  publish(port);
  takeBack(0);
  const ms = performance.now() - start;
  if (corrupt > messages) {
    const count = `${messages} message${messages === 1 ? "" : "s"}`;
    throw new RangeError(`Cannot corrupt message ${corrupt}: the stream has ${count}`);
  }
  return {
    sentDigest: sent.digest("hex"),
    receivedDigest: received.digest("hex"),
    stream: { bytes: sentSize, messages, ms },
  };
}

/** Puts a message into the ring without showing it yet; where it is doomed, with one wrong byte. */
function place(port: Port, payload: Uint8Array, doomed: boolean): void {
  const { area, offset } = claim(port, payload.length, { tag: TAG.echo, ...PATIENCE });
  area.set(payload, offset);
  if (doomed) area[offset + (payload.length >> 1)]! ^= 1;
  finish(port);
}

/** Times 1 MiB messages to the Zig worker, until it has answered after the last of them. */
function sendLarge(port: Port): Transfer {
  const payload = new Uint8Array(MIB).fill(0x5a);
  const last = { payload: payload.subarray(0, 1), codec: CODEC_BYTES, tag: TAG.echo };
  const send = (count: number) => {
    for (let index = 0; index < count; index++) {
      writeMessage(port, { payload, codec: CODEC_BYTES, tag: TAG.sink }, PATIENCE);
    }
    writeMessage(port, last, PATIENCE);
    if (readMessage(port, PATIENCE) === undefined) throw new Error("The Zig worker is silent");
  };
  send(LARGE_COUNT >> 3);
  return timed(() => send(LARGE_COUNT));
}

/** Times 1 MiB messages from the Zig worker, from the order to the last byte. */
function receiveLarge(port: Port): Transfer {
  const into = new Uint8Array(MIB);
  const receive = (count: number) => {
    const payload = new Uint8Array(Uint32Array.of(count, MIB).buffer);
    writeMessage(port, { payload, codec: CODEC_BYTES, tag: TAG.flood }, PATIENCE);
    for (let index = 0; index < count; index++) {
      if (readInto(port, into, PATIENCE) !== MIB) throw new Error("A message is missing");
    }
  };
  receive(LARGE_COUNT >> 3);
  return timed(() => receive(LARGE_COUNT));
}

function timed(transfer: () => void): Transfer {
  const start = performance.now();
  transfer();
  return { bytes: LARGE_COUNT * MIB, messages: LARGE_COUNT, ms: performance.now() - start };
}

/** Times JSON there and back, one at a time, both sides blocking. */
function measureEcho(port: Port): Latency {
  const samples = new Float64Array(ECHO_COUNT);
  for (let index = -WARM_UP_COUNT; index < ECHO_COUNT; index++) {
    const start = performance.now();
    port.write(QUESTION, PATIENCE);
    const answer = port.read(PATIENCE) as typeof QUESTION;
    const ms = performance.now() - start;
    if (answer.id !== QUESTION.id) throw new Error("The echo is another message");
    if (index >= 0) samples[index] = ms;
  }
  return latencyOf(samples);
}

/** Times the same over the runtime's own channel between the same two workers. */
async function measureRival(rival: MessagePort): Promise<Latency> {
  let resolve: (value: typeof QUESTION) => void;
  rival.onmessage = ({ data }) => resolve(data);
  const samples = new Float64Array(ECHO_COUNT);
  for (let index = -WARM_UP_COUNT; index < ECHO_COUNT; index++) {
    const start = performance.now();
    const answer = new Promise<typeof QUESTION>((done) => resolve = done);
    rival.postMessage(QUESTION);
    const { id } = await answer;
    const ms = performance.now() - start;
    if (id !== QUESTION.id) throw new Error("The echo is another message");
    if (index >= 0) samples[index] = ms;
  }
  rival.close();
  return latencyOf(samples);
}

function latencyOf(milliseconds: Float64Array): Latency {
  milliseconds.sort();
  return { p50: percentile(milliseconds, 0.5) * 1e3, p99: percentile(milliseconds, 0.99) * 1e3 };
}
