/** `thread-stream`: text into a `Writable` of another thread, for Node's loggers. @module */
import ThreadStream from "thread-stream";
import type { EventEnd, Order, Peer, Report } from "../peer.ts";
import { valuesOf } from "../payload.ts";
import { playOf } from "../plays.ts";

/** What is used of the library, which has declarations for Node alone. */
interface Stream {
  write(text: string): boolean;
  on(event: string, listener: (value: never) => void): void;
  end(): void;
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
  prepare: () => ({ a: { value: undefined }, b: { value: undefined } }),
  open() {
    throw new Error("Cannot open: the worker belongs to the library");
  },
  async play(order: Order, place): Promise<Report> {
    const { scenario } = order;
    const stream = new Stream({
      filename: place.moduleUrl("thread_stream_worker"),
      workerData: { order: { ...order, role: "b" } },
    });
    const report = new Promise<Report>((resolve, reject) => {
      stream.on("report", resolve as (value: never) => void);
      stream.on("error", reject as (value: never) => void);
    });
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

export default peer;
