/** The worker of the peer `thread-stream`: a `Writable` that takes lines of JSON. @module */
import { Writable } from "node:stream";
import { parentPort } from "node:worker_threads";
import { valuesOf } from "./payload.ts";
import type { EventEnd, Order } from "./peer.ts";
import { playOf } from "./plays.ts";

/** Makes the destination; the library's worker calls it. */
export default function destination({ order }: { order: Order }): Writable {
  const values = valuesOf(order.scenario);
  let take = (_number: number) => {};
  let rest = "";
  const end: EventEnd = {
    kind: "events",
    send: () => {},
    listen: (listener) => take = listener,
    close: () => {},
  };
  playOf(order.scenario)(end, order, undefined as never).then((report) =>
    parentPort?.postMessage({ code: "EVENT", name: "report", args: [report] })
  );
  return new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) take(values.numberOf(JSON.parse(line)));
      done();
    },
  });
}
