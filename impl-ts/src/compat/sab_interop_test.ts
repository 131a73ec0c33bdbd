import { assert, assertEquals, assertThrows } from "@std/assert";
import { Disposed, Original, withSteps } from "../mailbox/fixture.ts";
import { messageOf, post, turn, until, within } from "./sab_fixture.ts";
import { SABPipe } from "./sab_message_port.ts";

const SIZE = 64;

/** One end of this library, and the original at the other end. */
function ends(role: "r" | "w", size = SIZE) {
  const sab = new SharedArrayBuffer(size);
  const ours = new SABPipe(role, sab, 0, null, null, { wire: "mailbox" });
  return { ours, original: new Original(sab), words: new Int32Array(sab, 0, 8) };
}

Deno.test("mailbox wire: a burst is one array, byte for byte", async () => {
  const { ours, words } = ends("w");
  const bytes = new Uint8Array(ours.buffer);
  await post(ours, { a: 1 }, undefined, "é");
  const text = '[{"a":1},null,"é"]';
  assertEquals(new TextDecoder().decode(bytes.slice(32, 32 + words[2]!)), text);
  assertEquals([...words.slice(0, 5)], [0, 1, 19, 1, 0]);
  ours.destroy();
  assertEquals([...words.slice(0, 2)], [-1, -1]);
});

Deno.test("mailbox wire: a large burst is cut as the original cuts it", async () => {
  const { ours, original, words } = ends("w");
  const written = ours.postMessage("x".repeat(100));
  await turn();
  assertEquals([...words.slice(1, 5)], [1, 32, 4, 0]);
  assertEquals(await within(original.turn(original.read())), ["x".repeat(100)]);
  await within(written);
  assertEquals([...words.slice(1, 5)], [0, 8, 4, 3]);
});

Deno.test("mailbox wire: the original reads what we post", async () => {
  const { ours, original } = ends("w");
  const values = [1, "two", { three: [3, null] }, "long ".repeat(50), null];
  for (const value of values) {
    const written = ours.postMessage(value);
    assertEquals(await within(original.turn(original.read())), [value]);
    await within(written);
  }
  const bursts = values.map((value) => ours.postMessage(value));
  assertEquals(await within(original.turn(original.read())), values);
  await within(Promise.all(bursts));
});

Deno.test("mailbox wire: we read what the original writes", async () => {
  const { ours, original } = ends("r");
  const read = ours.asyncRead();
  await within(original.turn(original.write([1, 2, 3])));
  assertEquals([await within(read), ours.tryRead(9)], [1, [3, 2]]);
  const large = "é€😀".repeat(40);
  const writing = original.turn(original.write([large, "behind"]));
  assertEquals([await within(ours.asyncRead()), ours.tryPeek()], [large, "behind"]);
  await within(writing);
  const seen: unknown[] = [];
  assertEquals(ours.read(), "behind");
  ours.onmessage = ({ data }) => seen.push(data);
  await within(original.turn(original.write([4])));
  await within(original.turn(original.write([5, null])));
  await until(() => seen.length === 3);
  assertEquals(seen, [4, 5, null]);
  ours.onmessage = null;
});

Deno.test("mailbox wire: two payloads of the original are two bursts", async () => {
  const { ours, original } = ends("r");
  ours.queueLimit = 2;
  await within(original.turn(original.write([1, 2, 3])));
  assertEquals(ours.tryRead(), 2);
  await within(original.turn(original.write([4, 5])));
  assertEquals([ours.tryRead(), ours.tryRead(), ours.tryRead()], [3, 4, 5]);
  assertEquals(ours.tryRead(), null);
});

Deno.test("mailbox wire: a payload that comes at once after another is none of its burst", () => {
  const { ours, original } = ends("r");
  ours.queueLimit = 2;
  original.block(original.write([1, 2, 3]));
  const next = original.write([4, 5]);
  assertEquals(withSteps(() => original.poll(next), () => ours.tryRead()), 2);
  assertEquals([3, 4, 5, null], [0, 0, 0, 0].map(() => ours.tryRead()));
  // A bad payload is reported by the call that would have returned its messages.
  original.block(original.write([6, 7]));
  const bad = original.writeBytes(new TextEncoder().encode("[}"), 32);
  assertEquals(withSteps(() => original.poll(bad), () => ours.tryRead()), 6);
  assertEquals(ours.tryRead(), 7);
  assertThrows(() => ours.tryRead(), Error, "message.json");
  original.block(original.write([8]));
  assertEquals(ours.tryRead(), 8);
});

Deno.test("mailbox wire: a payload that is no array costs one call", async () => {
  const { ours, original } = ends("r");
  const bad = new TextEncoder().encode("[}");
  original.block(original.writeBytes(bad, 32));
  assertThrows(() => ours.tryRead(), Error, "message.json");
  await within(original.turn(original.write(["good"])));
  assertEquals(ours.tryRead(), "good");
  const wrong = new Int32Array(ours.buffer);
  wrong[2] = 1_000;
  Atomics.store(wrong, 1, 1);
  assertThrows(() => ours.tryRead(), Error, "mailbox.length");
});

Deno.test("mailbox wire: a close ends every wait of the other side", async () => {
  for (const role of ["r", "w"] as const) {
    const { ours, original } = ends(role);
    if (role === "w") await post(ours, "full");
    const wait = messageOf(() => role === "r" ? ours.asyncRead() : ours.postMessage("waits"));
    await turn();
    original.block(original.close());
    assertEquals([await wait, ours.isDisposed()], ["SABPipe disposed", true]);
    const other = ends(role);
    if (role === "r") other.original.block(other.original.write(["full"]));
    const waiting = role === "r" ? other.original.write([1]) : other.original.read();
    const verdict = other.original.turn<unknown>(waiting).catch((error) => error);
    await turn();
    other.ours.destroy();
    assert(await within(verdict) instanceof Disposed);
  }
});

Deno.test("mailbox wire: our late write does not overwrite the original's close", async () => {
  const { ours, original, words } = ends("w");
  const promise = ours.postMessage(1);
  original.block(original.close());
  assertEquals(await messageOf(() => promise), "SABPipe disposed");
  assertEquals([...words.slice(0, 2)], [-1, -1]);
  assertThrows(() => ours.postMessage(2), Error, "SABPipe disposed");
});
