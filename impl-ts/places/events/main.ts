/** Events on both sides: listeners and handlers, stopping and going on, and the end. */
import { Port } from "millrace";
import { assertEquals, type Stage, within } from "../stage.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create<number>();
  const worker = stage.start();
  worker.postMessage(port.handoff());

  // A listener to one message: what comes after it stays, for whoever takes it. Its event has all
  // that a `MessageEvent` has.
  const first = new Promise((resolve) => {
    port.addEventListener("message", (event) => {
      const { type, data, origin, lastEventId, source, ports } = event;
      resolve([event instanceof Event, type, data, origin, lastEventId, source, ...ports]);
    }, { once: true });
  });
  for (const n of [1, 2, 3]) port.postMessage(n);
  assertEquals(await within(first), [true, "message", 10, "", "", null]);
  assertEquals(await within(port.readAsync()), 20);

  // A listener that a signal ends.
  const ending = new AbortController();
  const third = new Promise((resolve) => {
    port.addEventListener("message", ({ data }) => {
      ending.abort();
      resolve(data);
    }, { signal: ending.signal });
  });
  for (const n of [4, 5, 6]) port.postMessage(n);
  assertEquals(await within(third), 30);

  // A handler that stops after each message: it is set again later, and nothing is lost.
  for (const wanted of [40, 50, 60]) {
    const heard = new Promise((resolve) => {
      port.onmessage = ({ data, target }) => {
        port.onmessage = null;
        resolve([data, target === port]);
      };
    });
    assertEquals(await within(heard), [wanted, true]);
    await pause();
  }

  // The end comes once, after the last message.
  const said: unknown[] = [];
  port.onmessage = ({ data }) => said.push(data);
  const closing = new Promise<void>((resolve) => {
    port.onclose = ({ type, error }) => {
      said.push([type, error]);
      resolve();
    };
  });
  port.postMessage(7);
  port.end();
  await within(closing);
  assertEquals(said, [70, ["close", undefined]]);
  assertEquals([await within(port.closed), port.ended], [undefined, true]);
  assertEquals(await worker.result, [1, 2, 3, 4, 5, 6, 7, "close"]);
  port.close();
}

/** One turn of the event loop, in which a port that nobody listens to must deliver nothing. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
