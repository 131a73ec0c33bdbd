/** The worker of the peer `thread-stream`: a `Writable` that takes lines of JSON. @module */
import { Writable } from "node:stream";
import { parentPort } from "node:worker_threads";
import { valuesOf } from "./payload.ts";
import type { EventEnd, Order, Report } from "./peer.ts";
import { playOf } from "./plays/plays.ts";

/** Makes the destination; the library's worker calls it. Each order is one more run. */
export default function destination(): Writable {
  let take = (_text: string) => {};
  parentPort!.on("message", ({ order }: { order?: Order }) => {
    if (order === undefined) return;
    const values = valuesOf(order.scenario);
    let listener = (_number: number) => {};
    const end: EventEnd = {
      kind: "events",
      send: () => {},
      listen: (wanted) => listener = wanted,
      close: () => {},
    };
    let rest = "";
    take = (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) listener(values.numberOf(JSON.parse(line)));
    };
    const say = (name: string, report: Report) =>
      parentPort!.postMessage({ code: "EVENT", name, args: [report] });
    playOf(order.scenario)(end, order, undefined as never).then((report) => say("report", report));
    // Text goes another way than orders, and must not come earlier.
    say("listening", {});
  });
  return new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      take(chunk);
      done();
    },
  });
}
