/** Calls between both ends of a port in one thread. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { callContext, CallError, remote, serve } from "./call.ts";
import { codeOf } from "../testing/fixture.ts";
import { ports } from "../port/fixture.ts";

const api = {
  add: (a: number, b: number) => a + b,
  later: async (text: string) => (await Promise.resolve(text)).toUpperCase(),
  identity: (value?: unknown) => value,
  fail(name: string, text: string, data?: unknown): never {
    throw Object.assign(new Error(text), { name, data });
  },
  text: { reverse: (text: string) => [...text].reverse().join("") },
  *count(last: number): Generator<number, string> {
    for (let n = 0; n < last; n++) yield n;
    return "all";
  },
  async *slowly(last: number) {
    for (let n = 0; n < last; n++) {
      await Promise.resolve();
      yield n;
    }
  },
};

Deno.test("remote calls what serve serves, as promises", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, api);
  const far = remote<typeof api>(here);
  assertEquals(await far.add(1, 2), 3);
  assertEquals(await far.later("hello"), "HELLO");
  assertEquals(await far.text.reverse("abc"), "cba");
  const bytes = Uint8Array.of(1, 2, 255);
  assertEquals(await far.identity(bytes), bytes);
  assertEquals(await far.identity(undefined), undefined);
  assertEquals(await far.identity(null), null);
  assertEquals(await far.identity({ a: ["ü\ud800"] }), { a: ["ü\ud800"] });
  assertEquals(await far.identity("\ud800"), "\ud800");
});

Deno.test("a result in pieces is an asynchronous generator", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, api);
  const far = remote<typeof api>(here);
  const seen: number[] = [];
  for await (const n of far.iterate.count(100)) seen.push(n);
  assertEquals(seen, Array.from({ length: 100 }, (_, n) => n));
  const steps = far.iterate.count(1);
  assertEquals(await steps.next(), { done: false, value: 0 });
  assertEquals(await steps.next(), { done: true, value: "all" });
  const slow: number[] = [];
  for await (const n of far.iterate.slowly(50)) slow.push(n);
  assertEquals(slow.length, 50);
});

Deno.test("an error crosses with its name, its text and its data", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, api);
  const far = remote<typeof api>(here);
  const error = await assertRejects(() => far.fail("Oops", "it broke", { at: 3 }), CallError);
  assertEquals([error.code, error.name, error.message], ["call.thrown", "Oops", "it broke"]);
  assertEquals([error instanceof CallError, error.remoteName], [true, "Oops"]);
  assertEquals(error.data, { at: 3 });
});

Deno.test("[call.refused] [call.result] what cannot be called, or written, is told", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, { odd: () => 1n, toLocaleString: 5 });
  const far = remote<{ odd(): unknown; none(): void; valueOf(): string }>(here);
  const missing = await assertRejects(() => far.none(), CallError);
  assertEquals([missing.code, missing.name], ["call.method", "CallError"]);
  const text = "Cannot call none: the other side has no method of that name";
  assertEquals(missing.message, text);
  assertEquals(await codeOf(far.odd()), "call.result");
});

Deno.test("with gives a call up, and its method is told", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  const told: unknown[] = [];
  const waits = {
    hold: () =>
      new Promise<void>((resolve) => {
        const { signal } = callContext()!;
        signal.addEventListener("abort", () => {
          told.push(signal.reason.code);
          resolve();
        });
      }),
  };
  serve(there, waits);
  const far = remote<typeof waits>(here);
  assertEquals(await codeOf(far.with({ timeout: 5 }).hold()), "wait.timeout");
  const stop = new AbortController();
  const held = far.with({ signal: stop.signal }).hold();
  setTimeout(() => stop.abort("enough"), 5);
  assertEquals(await held.catch((reason) => reason), "enough");
  while (told.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assertEquals(told, ["call.cancelled", "call.cancelled"]);
});

Deno.test("plain messages go on as ever beside calls", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, api);
  const far = remote<typeof api>(here);
  here.write("one");
  const sum = far.add(1, 1);
  here.write("two");
  assertEquals(await sum, 2);
  assertEquals(there.tryRead(), "one");
  assertEquals(there.tryRead(), "two");
  assertEquals(there.tryRead(), undefined);
  const seen: unknown[] = [];
  there.onmessage = ({ data }) => seen.push(data);
  here.write("three");
  assertEquals(await far.add(2, 2), 4);
  assertEquals(seen, ["three"]);
});

Deno.test("a port that serves nothing answers calls all the same", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  remote(there);
  assertEquals(await codeOf(remote<typeof api>(here).add(1, 2)), "call.method");
  assert(true);
});
