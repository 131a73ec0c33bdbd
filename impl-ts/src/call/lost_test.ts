/** What becomes of calls when the port is lost, ends, or comes back. */

import { revive } from "../more/revive.ts";
import { tryReadMessage, writeMessage } from "../more/raw.ts";
import { callContext, remote, serve } from "./call.ts";
import { CALL, CANCEL, outcome, RETURN, turns, withRaw } from "./fixture.ts";
import { codeOf } from "../testing/fixture.ts";
import { held, ports } from "../port/fixture.ts";
import { failEndpoint } from "../wait/state.ts";
import { Port } from "../port/port.ts";
import { assertEquals } from "@std/assert";

interface Far {
  ask(): Promise<unknown>;
}

/** Serves a method that says when it has begun, and waits until it is told. */
function hold(told: string[], begun = () => {}) {
  return {
    hold() {
      begun();
      const { signal } = callContext()!;
      return new Promise<void>((resolve) =>
        signal.addEventListener("abort", () => {
          told.push(signal.reason.code);
          resolve();
        })
      );
    },
  };
}

Deno.test("[call.lost] calls end after the answers that were published", async () => {
  const [port, raw] = withRaw();
  using _port = port;
  const far = remote<Far>(port);
  const calls = [far.ask(), far.ask()];
  raw.send(RETURN, 1, "in time");
  raw.port.end();
  assertEquals(await calls[0], "in time");
  assertEquals(await codeOf(calls[1]!), "call.ended");
  assertEquals(await codeOf(far.ask()), "call.ended");
  assertEquals(outcome(() => far.sync.ask()), "call.ended");
  assertEquals(await codeOf(far.notify.ask()), "call.ended");
});

Deno.test("[call.lost] calls fail after each way in which a port is lost", async () => {
  for (const how of ["close", "fail", "own"]) {
    const [port, raw] = withRaw();
    const far = remote<Far>(port).with({ timeout: 10_000 });
    const codes: unknown[] = [];
    if (how === "close") raw.port.close();
    else if (how === "fail") failEndpoint(port.segment, port.link.peer, "peer.lost");
    else port.close();
    codes.push(outcome(() => far.sync.ask()), await codeOf(far.ask()));
    const code = how === "close" ? "peer.closed" : how === "fail" ? "peer.failed" : "pipe.closed";
    assertEquals(codes, [code, code]);
    port.close();
  }
});

Deno.test("[call.told] methods are told when nothing can be written", async () => {
  for (const how of ["close", "end", "own"]) {
    const [port, raw] = withRaw();
    const told: string[] = [];
    serve(port, hold(told));
    raw.send(CALL, 1, "hold");
    await turns();
    if (how === "close") raw.port.close();
    else if (how === "end") port.end();
    else port.close();
    for (let turn = 0; turn < 100 && told.length === 0; turn++) await turns();
    assertEquals(told, ["call.cancelled"], how);
    port.close();
  }
});

Deno.test("a peer that has ended its stream is answered", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  serve(there, { later: () => new Promise((resolve) => setTimeout(resolve, 5, "late")) });
  const call = remote<{ later(): Promise<string> }>(here).later();
  here.end();
  assertEquals(await call, "late");
  assertEquals(await codeOf(remote<Far>(here).ask()), "pipe.ended");
});

Deno.test("[call.told] it is told also after the end of the peer's stream", async () => {
  const [port, raw] = withRaw();
  const told: string[] = [];
  serve(port, hold(told));
  raw.send(CALL, 1, "hold");
  raw.port.end();
  await turns();
  assertEquals(told, []);
  raw.port.close();
  for (let turn = 0; turn < 100 && told.length === 0; turn++) await turns();
  assertEquals(told, ["call.cancelled"]);
  port.close();
});

Deno.test("[call.vacated] nothing of the calls reaches the next owner", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const told: string[] = [];
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  serve(port, { ...hold(told, resolve), echo: (value: unknown) => value });
  const far = remote<Far>(port);
  raw.send(CALL, 1, "hold");
  await held(begun);
  const calls = [far.ask(), far.with({ timeout: 1 }).ask()];
  while (port.tryWrite(0));
  assertEquals(await codeOf(calls[1]!), "wait.timeout"); // its cancel is owed
  raw.port.close();
  assertEquals(await codeOf(calls[0]!), "peer.closed");
  using again = revive(port);
  using next = Port.attach(again.memory, { calls: true });
  await turns();
  assertEquals(tryReadMessage(next), undefined);
  assertEquals(told, ["call.cancelled"]);
  serve(again, { echo: (value: unknown) => value });
  const answer = remote<Far>(again).ask();
  assertEquals(tryReadMessage(next)?.tag, 1);
  writeMessage(next, { kind: RETURN, tag: 1, codec: 4, payload: new Uint8Array(0) });
  assertEquals(await answer, undefined);
  writeMessage(next, { kind: CALL, tag: 1 + CANCEL, codec: 4, payload: new Uint8Array(0) });
  await turns();
  assertEquals(tryReadMessage(next), undefined);
});

Deno.test("[call.vacated] answers that found no room do not reach the next owner", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  serve(port, { echo: (value: unknown) => value });
  while (port.tryWrite(0));
  raw.send(CALL, 1, "echo", "for the last owner");
  const notice = remote<Far>(port).notify.ask();
  assertEquals(port.tryRead(), undefined); // served, and the answer accepted
  raw.port.close();
  using again = revive(port);
  again.postMessage("for whoever comes");
  using next = Port.attach(again.memory, { calls: true });
  await turns();
  assertEquals(next.tryRead(), "for whoever comes");
  assertEquals(tryReadMessage(next), undefined);
  assertEquals(await codeOf(notice), "peer.closed");
});

Deno.test("[call.vacated] [call.lost] who vacates ends its calls by the peer's state", async () => {
  for (const how of ["close", "fail"]) {
    const [port, raw] = withRaw();
    using _port = port;
    const call = remote<Far>(port).ask();
    if (how === "close") raw.port.close();
    else failEndpoint(port.segment, port.link.peer, "peer.lost");
    using _again = revive(port); // nobody has read since
    assertEquals(await codeOf(call), how === "close" ? "peer.closed" : "peer.failed");
  }
});

Deno.test("[call.bad_answer] an answer that is taken back ends its call", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const code = codeOf(remote<Far>(port).ask());
  const large = { kind: RETURN, tag: 1, codec: 4, payload: new Uint8Array(1000) };
  assertEquals(outcome(() => writeMessage(raw.port, large, { timeout: 1 })), "wait.timeout");
  await turns();
  raw.port.tryWrite("cancelled");
  assertEquals(await code, "message.cancelled");
  assertEquals(port.tryRead(), "cancelled");
});
