/** Calls that wait for a place: 1,024 others are under way. */

import { assert, assertEquals } from "@std/assert";
import { remote, serve } from "./call.ts";
import { CALL, outcome, type Raw, RETURN, turns, withRaw } from "./fixture.ts";
import { codeOf } from "../testing/fixture.ts";
import type { Port } from "../mod.ts";
import { ports } from "../port/fixture.ts";

/** What the peer would serve. */
interface Far {
  ask(value?: unknown): Promise<unknown>;
  rows(): Generator<number, string>;
}

const MOST = 1024;

/** A port with as many calls under way as may be, and those. */
function full(): [Port<unknown>, Raw, Promise<unknown>[]] {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  const calls = Array.from({ length: MOST }, () => remote<Far>(port).ask());
  for (const call of calls) call.catch(() => {});
  assertEquals(raw.take().length, MOST);
  return [port, raw, calls];
}

Deno.test("[call.under_way] calls beyond the limit are made in order, later", async () => {
  const [port, raw, calls] = full();
  using _port = port;
  const far = remote<Far>(port);
  const bytes = Uint8Array.of(1);
  const kept = [far.ask(bytes), far.ask("two")];
  const rows = far.iterate.rows();
  const row = rows.next();
  bytes[0] = 9; // what was called is what it was then
  await turns();
  assertEquals(raw.take(), []);
  raw.send(RETURN, 7, "seven");
  assertEquals(await calls[6], "seven");
  await turns();
  assertEquals(raw.take(), [[CALL, 1025, "ask", Uint8Array.of(1)]]);
  raw.send(RETURN, 1);
  raw.send(RETURN, 2);
  await Promise.all([calls[0], calls[1]]);
  await turns();
  assertEquals(raw.take(), [[CALL, 1026, "ask", "two"], [CALL, 1027, "rows"]]);
  for (const id of [1027, 1026, 1025]) raw.send(RETURN, id, id);
  assertEquals(await Promise.all(kept), [1025, 1026]);
  assertEquals((await row).value, 1027);
});

Deno.test("ten times as many calls as may be under way are all answered", async () => {
  const [here, there] = ports();
  using _here = here;
  using _there = there;
  let most = 0;
  let now = 0;
  const api = {
    async next(n: number) {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
      return n + 1;
    },
  };
  serve(there, api);
  const far = remote<typeof api>(here);
  const calls = Array.from({ length: 10 * MOST }, (_, n) => far.next(n));
  assertEquals(await Promise.all(calls), Array.from(calls, (_, n) => n + 1));
  assert(most <= MOST);
});

Deno.test("a call that waits for a place is given up, and was never made", async () => {
  const [port, raw, calls] = full();
  using _port = port;
  const far = remote<Far>(port);
  const stop = new AbortController();
  const late = far.with({ timeout: 1 }).ask("late");
  const stopped = far.with({ signal: stop.signal }).ask("stopped");
  const last = far.ask("last");
  stop.abort("enough");
  assertEquals(await stopped.catch((reason) => reason), "enough");
  assertEquals(await codeOf(late), "wait.timeout");
  raw.send(RETURN, 5);
  await calls[4];
  await turns();
  assertEquals(raw.take(), [[CALL, 1025, "ask", "last"]]);
  raw.send(RETURN, 1025, "answer");
  assertEquals(await last, "answer");
});

Deno.test("[call.lost] calls that wait for a place end with the port", async () => {
  for (
    const end of [(port: Port<unknown>) => port.close(), (_: unknown, raw: Raw) => raw.port.end()]
  ) {
    const [port, raw, calls] = full();
    using _port = port;
    const kept = remote<Far>(port).ask();
    end(port, raw);
    const code = await codeOf(kept);
    assertEquals(await codeOf(calls[0]!), code);
    assert(code === "pipe.closed" || code === "call.ended", code);
    assertEquals(await codeOf(remote<Far>(port).ask()), code);
  }
});

Deno.test("[call.under_way] a place that a call leaves unmade is another one's", async () => {
  const [port, raw] = withRaw({ capacity: 256 });
  using _port = port;
  const far = remote<Far>(port);
  const stop = new AbortController();
  // The ring is full after a few: the others are accepted, and not in it.
  const calls = Array.from({ length: MOST }, () => far.with({ signal: stop.signal }).ask());
  const kept = far.ask("kept");
  stop.abort("enough");
  const next = far.ask("next"); // for which there is a place, after the one that was kept
  for (const call of calls) assertEquals(await call.catch((reason) => reason), "enough");
  const seen: unknown[] = [];
  for (let turn = 0; turn < 100 && !seen.includes("next"); turn++) {
    seen.push(...raw.take().flat());
    await turns();
  }
  assertEquals(seen.filter((value) => value === "kept" || value === "next"), ["kept", "next"]);
  for (const id of [1025, 1026]) raw.send(RETURN, id, id);
  assertEquals(await Promise.all([kept, next]), [1025, 1026]);
});

Deno.test("a blocking call, and one that a method makes, fail beyond the limit", async () => {
  const [port, raw, calls] = full();
  using _port = port;
  const far = remote<Far>(port);
  assertEquals(outcome(() => far.sync.ask()), "call.limit");
  const codes: unknown[] = [];
  serve(port, { back: async () => void codes.push(await codeOf(far.ask("back"))) });
  raw.send(CALL, 1, "back");
  await turns();
  assertEquals(codes, ["call.limit"]);
  assertEquals(raw.take(), [[RETURN, 1]]);
  raw.send(RETURN, 1);
  await calls[0];
  const sync = far.with({ timeout: 5 }).sync;
  assertEquals(outcome(() => sync.ask()), "wait.timeout");
});

/** Makes as many calls as may be under way, and gives them up; none of them is ever answered. */
async function giveUpMany(port: Port<unknown>, raw: Raw): Promise<void> {
  const stop = new AbortController();
  const far = remote<Far>(port).with({ signal: stop.signal });
  const calls = Array.from({ length: MOST }, () => far.ask());
  assertEquals(raw.take().length, MOST);
  stop.abort("enough");
  for (const call of calls) assertEquals(await call.catch((reason) => reason), "enough");
  await turns();
  assertEquals(raw.take().length, MOST); // the cancels
}

Deno.test("[call.under_way] calls that were given up hold up no other", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  using _port = port;
  await giveUpMany(port, raw);
  const far = remote<Far>(port);
  const next = far.ask("next");
  assertEquals(raw.take(), [[CALL, MOST + 1, "ask", "next"]]);
  raw.send(RETURN, MOST + 1, "answer");
  assertEquals(await next, "answer");
  // One that blocks may wait for an answer too; and one that was kept is written.
  assertEquals(outcome(() => far.with({ timeout: 1 }).sync.ask()), "wait.timeout");
  const stop = new AbortController();
  const calls = Array.from({ length: MOST }, () => far.with({ signal: stop.signal }).ask());
  for (const call of calls) call.catch(() => {});
  raw.take();
  stop.abort();
});

Deno.test("[call.under_way] to give a call up makes room for one that is kept", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  using _port = port;
  const far = remote<Far>(port);
  const stop = new AbortController();
  const first = far.with({ signal: stop.signal }).ask("first");
  const others = Array.from({ length: MOST - 1 }, () => far.ask());
  for (const call of [first, ...others]) call.catch(() => {});
  const kept = far.ask("kept");
  kept.catch(() => {});
  await turns();
  assertEquals(raw.take().length, MOST);
  stop.abort("enough");
  await turns();
  assertEquals(raw.take().slice(-1), [[CALL, MOST + 1, "ask", "kept"]]);
  raw.send(RETURN, MOST + 1, "answer");
  assertEquals(await kept, "answer");
});

Deno.test("[call.unanswered] a peer that answers nothing gets no more calls", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  using _port = port;
  await giveUpMany(port, raw);
  const far = remote<Far>(port);
  const stop = new AbortController();
  const calls = Array.from({ length: MOST }, () => far.with({ signal: stop.signal }).ask());
  for (const call of calls) call.catch(() => {});
  assertEquals(await codeOf(far.ask("one more")), "call.limit");
  assertEquals(outcome(() => far.sync.ask()), "call.limit");
  assertEquals(raw.take().length, MOST);
  stop.abort("enough");
  assertEquals(await codeOf(far.ask("one more")), "call.limit");
  await turns();
  raw.take();
  raw.send(RETURN, 1, "late"); // an answer to any of them makes room for one call
  await turns();
  const next = far.ask("next");
  assertEquals(raw.take(), [[CALL, 2 * MOST + 1, "ask", "next"]]);
  raw.send(RETURN, 2 * MOST + 1, "answer");
  assertEquals(await next, "answer");
});

Deno.test("[call.unanswered] calls that are kept end with it as well", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 20 });
  using _port = port;
  await giveUpMany(port, raw);
  const far = remote<Far>(port);
  const stop = new AbortController();
  const given = far.with({ signal: stop.signal });
  const calls = Array.from({ length: MOST - 1 }, () => given.ask());
  for (const call of calls) call.catch(() => {});
  const last = far.ask("last");
  last.catch(() => {});
  raw.take();
  raw.send(RETURN, 1); // a call that was given up: there is room for a further call
  await turns();
  const kept = far.ask("kept"); // 1,024 of them wait for their answers
  const beyond = far.ask("beyond");
  beyond.catch(() => {});
  stop.abort("enough");
  await turns();
  assertEquals(await codeOf(beyond), "call.limit");
  // One place was left in all, which the first takes.
  assertEquals(raw.take().filter(([, , , value]) => value === "kept").length, 1);
  raw.send(RETURN, 2 * MOST + 1, "kept");
  assertEquals(await kept, "kept");
});
