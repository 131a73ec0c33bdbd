import { assertEquals, assertRejects } from "@std/assert";
import { SegmentError } from "../error.ts";
import { Port, receivePort } from "../mod.ts";

/** A parent and its worker's scope, which counts its listeners. */
function parent(): { post(data: unknown): void; source: MessagePort; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const post = (data: unknown) => port1.postMessage(data);
  return { post, source: port2, close: () => port1.close() };
}

Deno.test("receivePort takes the first handoff, with the options of a port", async () => {
  const { post, source, close } = parent();
  using here = Port.create<string>({ codec: "text" });
  using other = Port.create<string>();
  post("something else");
  post(here.handoff({ name: "log" }));
  const options = { source, signal: AbortSignal.timeout(10_000) };
  using there = await receivePort<string>({ ...options, codec: "text", maxMessageSize: 3 });
  here.write("yes");
  assertEquals(there.read(), "yes");
  here.write("no more");
  await assertRejects(async () => await there.readAsync(), Error, "maxMessageSize is 3");
  const receiving = receivePort<string>(options);
  post(other.handoff());
  using late = await receiving;
  late.write("of the next handoff");
  assertEquals(other.read(), "of the next handoff");
  close();
});

Deno.test("receivePort rejects if the end is taken, and by a signal", async () => {
  const { post, source, close } = parent();
  using here = Port.create<string>();
  using _taken = Port.attach<string>(here.memory);
  post(here.handoff());
  await assertRejects(() => receivePort({ source }), SegmentError, "it is taken");
  const controller = new AbortController();
  const receiving = receivePort({ source, signal: controller.signal });
  controller.abort(new Error("enough"));
  await assertRejects(() => receiving, Error, "enough");
  await assertRejects(() => receivePort({ source, signal: controller.signal }), Error, "enough");
  using free = Port.create<string>();
  const again = receivePort<string>({ source, signal: AbortSignal.timeout(10_000) });
  post(free.handoff());
  using there = await again; // the call that was aborted has taken nothing
  there.write("here");
  assertEquals(free.read(), "here");
  close();
});

Deno.test("receivePort says that a main thread has no parent", async () => {
  await assertRejects(() => receivePort(), TypeError, "this thread is no worker");
});
