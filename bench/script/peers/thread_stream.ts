/** `thread-stream`: text into a `Writable` of another thread, for Node's loggers. @module */
import ThreadStream from "thread-stream";
import { valuesOf } from "../payload.ts";
import { both, type EventEnd, type Order, type Peer, type Report } from "../peer.ts";
import type { Place } from "../place.ts";
import { playOf } from "../plays/plays.ts";

/** What is used of the library, which has declarations for Node alone. */
interface Stream {
  write(text: string): boolean;
  emit(event: string, value: unknown): boolean;
  once(event: string, listener: (value: never) => void): void;
  off(event: string, listener: (value: never) => void): void;
}

const Stream = ThreadStream as unknown as { new (options: object): Stream };

const peer: Peer = {
  decline({ name, format, ends, burst, awaited }, place) {
    if (place.name !== "node") return "needs the workers of Node";
    if (name !== "stream" || burst !== undefined) return "one way only";
    if (awaited) return "does not tell when a message was taken";
    if (ends !== "workers") return "the other end is a worker";
    return format === "json" ? undefined : "takes text only";
  },
  prepare: () => both(undefined),
  open() {
    throw new Error("Cannot open: the worker belongs to the library");
  },
  async play(order: Order, place): Promise<Report> {
    const { scenario } = order;
    kept ??= await start(place);
    const stream = kept;
    const listening = hearOf(stream, "listening");
    const report = hearOf(stream, "report");
    stream.emit("message", { order: { ...order, role: "b" } });
    await listening;
    const values = valuesOf(scenario);
    const end: EventEnd = {
      kind: "events",
      send: (number) => void stream.write(`${JSON.stringify(values.with(number))}\n`),
      listen: () => {},
      close: () => {},
    };
    await playOf(scenario)(end, order, place);
    return await report;
  },
  alone: true,
};

/** The peer of this file. */
export const peers = { "thread-stream": peer };

/**
 * The stream of this thread, and its worker. The library holds a stream weakly as soon as its
 * worker is ready: without this, a collection of garbage between the last `write` and the report
 * would lose the report.
 */
let kept: Stream | undefined;

async function start(place: Place): Promise<Stream> {
  const stream = new Stream({ filename: place.moduleUrl("thread_stream_worker") });
  await hearOf(stream, "ready");
  return stream;
}

/** The next event of this name. */
function hearOf(stream: Stream, name: string): Promise<Report> {
  return new Promise<Report>((resolve, reject) => {
    const done = (report: Report) => {
      stream.off("error", fail);
      resolve(report);
    };
    const fail = (error: Error) => {
      stream.off(name, done);
      reject(error);
    };
    stream.once(name, done);
    stream.once("error", fail);
  });
}
