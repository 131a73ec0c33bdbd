/** The side that calls, against a peer that writes anything. */

import { writeMany } from "../more/many.ts";
import { remote } from "./call.ts";
import { CallLayer } from "./layer.ts";
import { CALL, CANCEL, MORE, outcome, RETURN, THROW, turns, withRaw } from "./fixture.ts";
import { codeOf } from "../testing/fixture.ts";
import { assertEquals } from "@std/assert";

/** What the peer would serve. */
interface Far {
  ask(value?: unknown): Promise<unknown>;
  rows(): Generator<number, string>;
}

Deno.test("[call.id] ids count up, and pass over those that are under way", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const far = remote<Far>(port);
  const first = far.ask();
  const second = far.ask(2);
  assertEquals(raw.take(), [[CALL, 1, "ask"], [CALL, 2, "ask", 2]]);
  CallLayer.of(port).caller.lastId = 0; // as after the last id
  const third = far.ask(3);
  assertEquals(raw.take(), [[CALL, 3, "ask", 3]]);
  raw.send(RETURN, 2, "two");
  raw.send(RETURN, 1, "one");
  raw.send(RETURN, 3, "three");
  assertEquals(await Promise.all([first, second, third]), ["one", "two", "three"]);
});

Deno.test("[call.give_up] [call.late] a late answer goes unseen", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const reports: unknown[] = [];
  port.onmessageerror = ({ data }) => reports.push(data.code);
  const far = remote<Far>(port);
  assertEquals(await codeOf(far.with({ timeout: 1 }).ask()), "wait.timeout");
  assertEquals(raw.take(), [[CALL, 1, "ask"], [CALL, 1 + CANCEL]]);
  raw.send(RETURN, 1 + MORE, 5);
  raw.send(RETURN, 1, 5);
  await turns();
  assertEquals(reports, []);
  raw.send(RETURN, 1, 5); // it is answered: nobody is left
  await turns();
  assertEquals(reports, ["call.answer"]);
});

Deno.test("[call.cancel_owed] a cancel without room comes before the next message", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  const far = remote<Far>(port);
  const stop = new AbortController();
  const calls = [far.with({ signal: stop.signal }).ask(), far.ask()];
  while (port.tryWrite(0));
  stop.abort("enough");
  assertEquals(await calls[0]!.catch((reason) => reason), "enough");
  const posted = port.postMessage(1);
  const seen: unknown[][] = [];
  while (seen.length < 2 || seen.at(-1)![0] !== 1 || seen.at(-2)![1] !== 1 + CANCEL) {
    seen.push(...raw.take());
    await turns();
    if (seen.length > 100) break;
  }
  assertEquals(seen.at(-2), [CALL, 1 + CANCEL]);
  await posted;
  port.close();
  await Promise.allSettled(calls);
});

Deno.test("[call.cancel_owed] it is left out where the answer has come meanwhile", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const stop = new AbortController();
  const call = remote<Far>(port).with({ signal: stop.signal }).ask();
  while (port.tryWrite(0));
  stop.abort("enough");
  assertEquals(await call.catch((reason) => reason), "enough");
  raw.send(RETURN, 1, "late");
  assertEquals(port.tryRead(), undefined);
  const tags = raw.take().filter(([kind]) => kind === CALL).map(([, tag]) => tag);
  await turns();
  assertEquals([tags, raw.take()], [[1], []]);
});

Deno.test("a call that is written in part is taken back at its deadline", () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const far = remote<Far>(port);
  const large = new Uint8Array(1000);
  assertEquals(outcome(() => far.with({ timeout: 100 }).sync.ask(large)), "wait.timeout");
  assertEquals(outcome(() => raw.take()), []);
  assertEquals(port.tryWrite("next"), true);
  assertEquals(outcome(() => raw.take()), "message.cancelled");
  assertEquals(raw.take(), [[1, 0, "plain"]]);
  raw.send(RETURN, 1, "nobody");
  assertEquals(outcome(() => port.tryRead()), "call.answer");
});

Deno.test("[call.cancel_owed] nothing is placed between the frames of a message", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const call = remote<Far>(port).ask("x"); // which leaves room for a cancel after two chunks
  raw.send(RETURN, 1 + MORE, "not asked for"); // it is taken in while the write waits for room
  assertEquals(outcome(() => port.write(new Uint8Array(1000), { timeout: 50 })), "wait.timeout");
  assertEquals(raw.take(), [[CALL, 1, "ask", "x"]]);
  assertEquals(await codeOf(call), "call.items");
  await turns();
  assertEquals(outcome(() => raw.take()), "message.cancelled");
  assertEquals(raw.take(), [[CALL, 1 + CANCEL]]);
});

Deno.test("[call.grant] [call.window] credit is given after every eighth item", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const rows = remote<Far>(port).iterate.rows();
  const first = rows.next();
  for (let item = 0; item < 16; item++) raw.send(RETURN, 1 + MORE, item);
  assertEquals((await first).value, 0);
  assertEquals(raw.take(), [[CALL, 1, "rows"]]);
  for (let item = 1; item < 8; item++) assertEquals((await rows.next()).value, item);
  assertEquals(raw.take(), [[CALL, 1 + MORE]]);
  for (let item = 16; item < 24; item++) raw.send(RETURN, 1 + MORE, item);
  raw.send(RETURN, 1, "all");
  for (let item = 8; item < 24; item++) assertEquals((await rows.next()).value, item);
  assertEquals(await rows.next(), { done: true, value: "all" });
});

Deno.test("[call.too_many] items beyond the window end the call", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const far = remote<Far>(port);
  const rows = far.iterate.rows();
  const first = rows.next();
  for (let item = 0; item < 17; item++) raw.send(RETURN, 1 + MORE, item);
  assertEquals(await codeOf(first), "call.items");
  const one = far.ask();
  raw.send(RETURN, 2 + MORE, 0);
  assertEquals(await codeOf(one), "call.items");
  const tags = raw.take().map(([, tag]) => tag);
  assertEquals(tags, [1, 1 + CANCEL, 2, 2 + CANCEL]);
});

Deno.test("a loop that is left gives the call up, and none makes none", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const far = remote<Far>(port);
  far.iterate.rows();
  raw.send(RETURN, 1 + MORE, 5); // to nobody
  assertEquals(outcome(() => port.tryRead()), "call.answer");
  const rows = far.iterate.rows();
  const first = rows.next();
  raw.send(RETURN, 1 + MORE, 5);
  assertEquals((await first).value, 5);
  await rows.return("left");
  assertEquals(raw.take().map(([, tag]) => tag), [1, 1 + CANCEL]);
});

Deno.test("[call.bad_answer] what is wrong with an answer ends its call", async () => {
  const [port, raw] = withRaw({ maxMessageSize: 200 });
  using _port = port;
  const far = remote<Far>(port);
  const cases: [number, unknown[], string][] = [
    [RETURN, [1, 2], "call.form"],
    [THROW, ["Name"], "call.form"],
    [THROW, ["", "text"], "call.form"],
    [THROW, ["call.limit", "text"], "call.limit"],
    [THROW, ["message.size", "text"], "message.size"],
    [THROW, ["pipe.closed", "text"], "call.thrown"],
    [THROW, ["call.unknown", "text"], "call.thrown"],
    [RETURN, ["a".repeat(200)], "message.size"],
  ];
  for (const [index, [kind, values, code]] of cases.entries()) {
    const call = far.ask();
    raw.send(kind, index + 1, ...values);
    assertEquals(await codeOf(call), code, `case ${index}`);
  }
  assertEquals(port.tryRead(), undefined);
});

Deno.test("[call.set_aside] plain messages before the answer are kept, in order", () => {
  const [port, raw] = withRaw({ inboxCount: 4 });
  using _port = port;
  const far = remote<Far>(port).with({ timeout: 1000 });
  writeMany(raw.port, [1, 2]);
  raw.port.write(3);
  raw.send(RETURN, 9);
  raw.send(RETURN, 1, "answer");
  assertEquals(outcome(() => far.sync.ask()), "answer");
  assertEquals([port.tryRead(), port.tryRead(), port.tryRead()], [1, 2, 3]);
  assertEquals(outcome(() => port.tryRead()), "call.answer");
});

Deno.test("[call.set_aside] a full inbox gives the call up", async () => {
  const [port, raw] = withRaw({ inboxCount: 2 });
  using _port = port;
  const far = remote<Far>(port).with({ timeout: 1000 });
  for (let n = 0; n < 3; n++) raw.port.write(n);
  raw.send(RETURN, 1, "answer");
  assertEquals(outcome(() => far.sync.ask()), "call.inbox");
  assertEquals(await codeOf(far.ask()), "call.inbox");
  assertEquals([port.tryRead(), port.tryRead(), port.tryRead()], [0, 1, 2]);
  assertEquals(port.tryRead(), undefined); // the late answer
  const call = far.ask();
  raw.send(RETURN, 3, "again");
  assertEquals(await call, "again");
});

Deno.test("[call.takes_in] an answer passes a full inbox while room is waited for", async () => {
  const [port, raw] = withRaw({ capacity: 256, inboxCount: 0 });
  using _port = port;
  const far = remote<Far>(port);
  const call = far.ask();
  raw.port.write("plain");
  raw.send(RETURN, 1, "answer");
  while (port.tryWrite(0));
  assertEquals(outcome(() => port.write("x".repeat(80), { timeout: 5 })), "wait.timeout");
  assertEquals(await call, "answer");
  assertEquals(port.tryRead(), "plain");
});
