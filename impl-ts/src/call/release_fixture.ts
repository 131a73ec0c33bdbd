/**
 * Serves on ports whose peers leave a message unread and close, and prints how many of those ports
 * are still held. Run with `--v8-flags=--expose-gc`.
 *
 * @module
 */
import { serve } from "./call.ts";
import { Port } from "../port/port.ts";

const { gc } = globalThis as unknown as { gc(): void };
const COUNT = 20;

const refs: WeakRef<Port>[] = [];
for (let index = 0; index < COUNT; index++) serveOne();
// A timer ends at its next tick, of 100 ms; the rest are collections.
for (let i = 0; i < 20 && held().length > 0; i++) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  gc();
}
console.log(held().length);

function serveOne(): void {
  const port = Port.create({ capacity: 256 });
  port.onclose = () => port.close();
  serve(port, {});
  const peer = Port.attach(port.memory);
  peer.write("unread");
  peer.close();
  refs.push(new WeakRef(port));
}

function held(): unknown[] {
  return refs.filter((ref) => ref.deref() !== undefined);
}
