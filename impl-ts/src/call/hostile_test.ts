/** A peer that writes any messages of calls: nothing hangs, and the port stays usable. */

import { tryReadMessage, tryWriteMessage, writeMessage } from "../more/raw.ts";
import { remote, serve } from "./call.ts";
import { CALL, list, RETURN, THROW, turns, withRaw } from "./fixture.ts";
import { MillraceError } from "../error.ts";
import { random } from "../testing/fixture.ts";
import { type Port, Port as AnyPort } from "../port/port.ts";
import { Hub } from "../more/hub.ts";
import { assert, assertEquals } from "@std/assert";

const ROUNDS = Deno.env.get("MILLRACE_TEST_ALL") === "1" ? 300 : 20;
const STEPS = 200;
const NAMES = ["echo", "count", "fail", "never", "none", "", "n".repeat(300)];

const api = {
  echo: (value: unknown) => value,
  *count(last: number) {
    for (let n = 0; n < last; n++) yield n;
  },
  fail() {
    throw new Error("as asked");
  },
  never: () => new Promise<void>(() => {}),
  back: () => "still here",
};

/** A message that may be anything: mostly well made, with an id that may be under way. */
function message(next: () => number) {
  const kind = [CALL, RETURN, THROW][next() % 3]!;
  const id = next() % 16 === 0 ? next() & 0x3fffffff : next() % 24;
  const mark = [0, 0, 0, 0x40000000, 0x80000000, 0xc0000000][next() % 6]!;
  const values = [NAMES[next() % NAMES.length]!, next() % 40, new Uint8Array(next() % 300)];
  const payload = next() % 3 === 0 ? new Uint8Array(0) : list(values.slice(0, next() % 4));
  for (let change = next() % 8; change > 6 && payload.length > 0; change--) {
    payload[next() % payload.length] = next();
  }
  return { kind, tag: (id | mark) >>> 0, codec: next() % 16 === 0 ? next() % 3 : 4, payload };
}

/** Reads whatever there is; every report is documented. */
function readAll(port: Port<unknown>): void {
  for (let found: unknown = 0; found !== undefined;) {
    try {
      found = port.tryRead();
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
      assert(/^(call|message)\./.test(error.code), error.code);
    }
  }
}

Deno.test("any messages of calls are answered, reported or dropped, and never hang", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const next = random(round);
    const [port, raw] = withRaw({ capacity: [2048, 8192][round % 2]!, maxMessageSize: 400 });
    serve(port, api);
    const far = remote<typeof api>(port);
    const calls: Promise<unknown>[] = [];
    const add = (call: Promise<unknown>) =>
      calls.push(call.then(() => undefined, (error) => error));
    for (let step = 0; step < STEPS; step++) {
      if (next() % 8 === 0) add(far.with({ timeout: next() % 3 }).echo(next()));
      if (next() % 8 === 0) add(Array.fromAsync(far.with({ timeout: 3 }).iterate.count(9)));
      if (next() % 16 === 0) raw.port.tryWrite(next());
      tryWriteMessage(raw.port, message(next));
      if (next() % 4 === 0) readAll(port);
      if (next() % 4 === 0) tryReadMessage(raw.port);
      if (next() % 32 === 0) await turns();
    }
    for (const error of await Promise.all(calls)) {
      assert(error === undefined || error instanceof MillraceError, String(error));
    }
    // A call with an id of its own is served as ever, after what is left.
    const tag = 0x3ffffff0;
    const call = { kind: CALL, tag, codec: 4, payload: list(["back"]) };
    for (let sent = false, answered = false; !answered;) {
      sent ||= tryWriteMessage(raw.port, call);
      readAll(port);
      for (let answer; (answer = tryReadMessage(raw.port)) !== undefined;) {
        answered ||= answer.kind === RETURN && answer.tag === tag;
      }
      await turns();
    }
    port.close();
  }
});

Deno.test("in a hub, each client has its own calls, and select serves them", () => {
  using hub = Hub.create<unknown>(2);
  const clients = hub.ports.map((port) => AnyPort.from<unknown>(port.handoff(), { calls: true }));
  for (const [index, port] of hub.ports.entries()) serve(port, { name: () => index });
  for (const client of clients) {
    writeMessage(client, { kind: CALL, tag: 1, codec: 4, payload: list(["name"]) });
  }
  clients[1]!.write("plain");
  assertEquals(hub.select({ timeout: 1000 }), hub.ports[1]);
  assertEquals(hub.select({ timeout: 0 })?.tryRead(), "plain");
  for (const [index, client] of clients.entries()) {
    const answer = tryReadMessage(client)!;
    assertEquals([answer.kind, answer.tag, answer.payload], [RETURN, 1, list([index])]);
    client.close();
  }
});
