/** The side that serves, against a peer that writes anything. */

import { tryWriteMessage, writeMessage } from "../more/raw.ts";
import { writeMany } from "../more/many.ts";
import { claim, publish, release, tryPeek } from "../more/lend.ts";
import { callContext, CallError, remote, serve } from "./call.ts";
import { select } from "../more/select.ts";
import { CALL, CANCEL, MORE, outcome, RETURN, THROW, turns, withRaw } from "./fixture.ts";
import { assertEquals } from "@std/assert";

/** Methods, and what they have seen. */
function makeApi() {
  const told: number[] = [];
  const begun: unknown[] = [];
  const api = {
    echo: (value: unknown) => value,
    begin: (value: unknown) => void begun.push(value),
    hold(id: number) {
      const { signal } = callContext()!;
      return new Promise<void>((resolve) =>
        signal.addEventListener("abort", () => {
          told.push(id);
          resolve();
        })
      );
    },
    ignore: () => new Promise<void>(() => {}),
    *count(last: number) {
      try {
        for (let n = 0; n < last; n++) yield n;
        return "all";
      } finally {
        begun.push("over");
      }
    },
    refuse() {
      throw new CallError("call.arguments", "none of these");
    },
  };
  return { api, told, begun };
}

function refusal(tag: number, code: string): unknown[] {
  return [THROW, tag, code, code];
}

Deno.test("[call.answer] [call.order] answers have the ids of their calls", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, makeApi().api);
  raw.send(CALL, 7, "echo", "a");
  raw.send(CALL, 0, "echo", "nobody wants it");
  raw.send(CALL, 3, "echo", Uint8Array.of(1));
  raw.send(CALL, 4, "refuse");
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take(), [
    [RETURN, 7, "a"],
    [RETURN, 3, Uint8Array.of(1)],
    [THROW, 4, "call.arguments", "none of these"],
  ]);
});

Deno.test("[call.served_only] what a language adds is not served", () => {
  const [port, raw] = withRaw();
  using _port = port;
  class Counter {
    #count = 0;
    next = () => ++this.#count;
    add(n: number) {
      return this.#count += n;
    }
    static of = () => new Counter();
  }
  serve(port, Object.assign(new Counter(), { deep: { say: () => "hi", not: 1 }, list: [() => 1] }));
  const names = [
    "next",
    "add",
    "deep.say",
    "constructor",
    "toString",
    "deep",
    "deep.not",
    "list.0",
  ];
  for (const [index, name] of names.entries()) raw.send(CALL, index + 1, name, 5);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take().map(([kind, , value]) => kind === RETURN ? value : "refused"), [
    1,
    6,
    "hi",
    ...Array(5).fill("refused"),
  ]);
});

Deno.test("[call.duplicate] an id that is not answered yet is dropped, whatever it carries", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, makeApi().api);
  raw.send(CALL, 1, "hold", 1);
  raw.send(CALL, 1);
  writeMessage(raw.port, { kind: CALL, tag: 1, codec: 2, payload: new Uint8Array(0) });
  assertEquals(outcome(() => port.tryRead()), "call.duplicate");
  assertEquals(outcome(() => port.tryRead()), "call.duplicate");
  assertEquals(raw.take(), []);
});

Deno.test("[call.refused] 1,024 are served, and to cancel them makes no room", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 18 });
  using _port = port;
  serve(port, makeApi().api);
  for (let id = 1; id <= 1024; id++) raw.send(CALL, id, "ignore");
  for (let id = 1; id <= 1024; id++) raw.send(CALL, id + CANCEL);
  raw.send(CALL, 2000, "echo", 1);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take(), [refusal(2000, "call.limit")]);
  await turns();
});

Deno.test("[call.cancelled] the method is told, and its call answered", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const { api, told } = makeApi();
  serve(port, api);
  raw.send(CALL, 1, "hold", 1);
  raw.send(CALL, 2, "hold", 2);
  assertEquals(port.tryRead(), undefined);
  raw.send(CALL, 1 + CANCEL);
  assertEquals(port.tryRead(), undefined);
  assertEquals(told, [1]);
  await turns();
  assertEquals(raw.take(), [refusal(1, "call.cancelled")]);
});

Deno.test("[call.window] [call.stops] items wait for credit, and not after a cancel", () => {
  const [port, raw] = withRaw();
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  raw.send(CALL, 1, "count", 100);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take().length, 16);
  raw.send(CALL, 1 + MORE);
  raw.send(CALL, 1 + MORE);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take().length, 16);
  assertEquals(begun, []);
  raw.send(CALL, 1 + CANCEL);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take(), [refusal(1, "call.cancelled")]);
  assertEquals(begun, ["over"]);
  raw.send(CALL, 1 + MORE); // [call.crossed]
  assertEquals(port.tryRead(), undefined);
});

Deno.test("a result of as many items as come unasked is whole without credit", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, makeApi().api);
  raw.send(CALL, 1, "count", 16);
  assertEquals(port.tryRead(), undefined);
  const seen = raw.take();
  assertEquals([seen.length, seen.at(-1)], [17, [RETURN, 1, "all"]]);
});

Deno.test("[call.cancelled] a thenable answers at once, also while its thread blocks", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, {
    hold() {
      const { signal } = callContext()!;
      const then = (done: (value: unknown) => void) =>
        signal.addEventListener("abort", () => done("told"));
      return { then };
    },
  });
  raw.send(CALL, 1, "hold");
  raw.send(CALL, 1 + CANCEL);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take(), [[RETURN, 1, "told"]]);
});

Deno.test("[call.result] an item that cannot be written ends the result", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, {
    *odd() {
      yield 1;
      yield 2n;
      yield 3;
    },
  });
  raw.send(CALL, 1, "odd");
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take().map((message) => message.slice(0, 3)), [
    [RETURN, 1 + MORE, 1],
    [THROW, 1, "call.result"],
  ]);
});

Deno.test("[call.stops] a call whose cancel was read is not begun", () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  raw.send(CALL, 1, "begin", 1);
  raw.send(CALL, 2, "begin", 2);
  raw.send(CALL, 1 + CANCEL);
  while (port.tryWrite(0));
  // Both are taken in while it waits for room, and neither is begun. [call.takes_in]
  assertEquals(outcome(() => port.write("x".repeat(80), { timeout: 5 })), "wait.timeout");
  assertEquals(begun, []);
  raw.take();
  assertEquals(port.tryRead(), undefined);
  assertEquals(begun, [2]);
  assertEquals(raw.take(), [refusal(1, "call.cancelled"), [RETURN, 2]]);
});

Deno.test("[call.whole_first] nothing begins while a message is written in part", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  const large = port.writeAsync(new Uint8Array(1000));
  raw.send(CALL, 1, "begin", 1);
  assertEquals(port.tryRead(), undefined);
  await turns();
  assertEquals(begun, []);
  const seen: unknown[][] = [];
  while (seen.length < 2) {
    seen.push(...raw.take());
    await turns();
  }
  await large;
  assertEquals(begun, [1]);
  assertEquals(seen.map(([kind]) => kind), [1, RETURN]);
});

Deno.test("[call.whole_first] nothing begins while a frame is lent or claimed", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  raw.port.write("lent");
  assertEquals(tryPeek(port) !== undefined, true);
  raw.send(CALL, 1, "begin", 1);
  await turns();
  assertEquals(begun, []);
  release(port);
  const place = claim(port, 8);
  assertEquals(port.tryRead(), undefined);
  await turns();
  assertEquals(begun, []);
  place.payload.fill(0);
  publish(port);
  for (let turn = 0; turn < 100 && begun.length === 0; turn++) await turns();
  assertEquals(begun, [1]);
  assertEquals(raw.take().map(([kind]) => kind), [1, RETURN]);
});

Deno.test("[call.whole_first] what waits for a write waits for a lent frame", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  const large = port.writeAsync(new Uint8Array(1000));
  raw.send(CALL, 0, "begin", 1);
  writeMany(raw.port, ["a"]);
  raw.port.write("b");
  assertEquals(port.tryRead(), "a");
  assertEquals(tryPeek(port) !== undefined, true);
  while (raw.take().length === 0) await turns();
  await large;
  outcome(() => select([port], { timeout: 0 }));
  await new Promise((resolve) => setTimeout(resolve, 30));
  assertEquals(begun, []);
  release(port);
  for (let turn = 0; turn < 100 && begun.length === 0; turn++) await turns();
  assertEquals(begun, [1]);
});

Deno.test("to lend is to read: calls are begun, and never lent", () => {
  const [port, raw] = withRaw();
  using _port = port;
  const { api, begun } = makeApi();
  serve(port, api);
  raw.send(CALL, 0, "begin", 1);
  raw.port.write("plain");
  assertEquals(tryPeek(port)!.kind, 1);
  assertEquals(begun, [1]);
  release(port);
});

Deno.test("a notice that is refused, or fails, is reported", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, makeApi().api);
  raw.send(CALL, 0, "nobody");
  assertEquals(outcome(() => port.tryRead()), "call.method");
  raw.send(CALL, 0, "refuse");
  assertEquals(outcome(() => port.tryRead()), "call.thrown");
  const reports: string[] = [];
  port.onmessageerror = ({ data }) => reports.push(data.code);
  raw.send(CALL, 0, "nobody"); // also where nobody listens to messages
  await turns();
  assertEquals(reports, ["call.method"]);
  assertEquals(raw.take(), []);
});

Deno.test("a peer that takes no answers cannot make the port keep more and more", async () => {
  const [port, raw] = withRaw({ capacity: 4096 });
  serve(port, makeApi().api);
  let id = 1;
  let limits = 0;
  for (let round = 0; round < 200; round++) {
    const empty = { kind: CALL, codec: 4, payload: new Uint8Array(0) };
    while (tryWriteMessage(raw.port, { ...empty, tag: id })) {
      id++;
    }
    for (let code; (code = outcome(() => port.tryRead())) !== undefined;) {
      assertEquals(code, "call.limit");
      limits++;
    }
  }
  assertEquals(id - 1 - limits <= 3072 + 4096 / 16, true, `${id} calls, ${limits} dropped`);
  raw.take();
  await turns();
  port.close();
});

Deno.test("[call.depth] the innermost of 129 methods on one stack is refused", () => {
  const [port, raw] = withRaw({ capacity: 1 << 16 });
  using _port = port;
  const far = remote<{ up(): string }>(port).with({ timeout: 1000 });
  // The peer calls back whenever it is called, and answers with what came of that.
  let depth = 0;
  let deepest = 0;
  serve(port, {
    down() {
      deepest = Math.max(deepest, ++depth);
      raw.send(CALL, depth + 1, "down");
      try {
        return outcome(() => far.with({ timeout: 0 }).sync.up());
      } finally {
        depth--;
      }
    },
  });
  raw.send(CALL, 1, "down");
  assertEquals(port.tryRead(), undefined);
  assertEquals(deepest, 128);
  const refused = raw.take().filter(([kind]) => kind === THROW);
  assertEquals(refused, [refusal(129, "call.depth")]);
});
