/** Many ports of one thread share the turns of its event loop. */

import { assert, assertEquals } from "@std/assert";
import { Hub } from "../more/hub.ts";
import { Port, type PortCreateOptions } from "./port.ts";
import { ports, until } from "./fixture.ts";
import { AWAY, DRY, LATE, MORE, serve, type Served, type Standing } from "./rota.ts";
import { nextTask } from "../wait/task.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const COUNT = 64;
/** A message must have come within so many turns of the loop; it took some 20. */
const TURNS = 100;

/** Ports whose listeners write the next message at once, without end, and how many each has got. */
function floods(count: number, options: PortCreateOptions<Any, Any>, work = () => {}) {
  const counts: number[] = new Array(count).fill(0);
  const order: number[] = [];
  const pairs = counts.map(() => ports(options));
  for (const [n, [here, there]] of pairs.entries()) {
    there.writeMany([0, 0, 0]);
    here.onmessage = () => {
      counts[n]!++;
      order.push(n);
      work();
      there.write(0);
    };
  }
  const close = () => pairs.forEach(([here]) => here.close());
  return { counts, order, close };
}

/** Keeps the processor busy for `ms` milliseconds. */
function busy(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

Deno.test("the ports of one thread have the time of a turn together", async () => {
  const limits = { capacity: 256, turnCount: 1e9, turnTime: 4 };
  const { order, close } = floods(8, limits, () => busy(1));
  await until(() => new Set(order).size === 8); // all ports have begun
  for (let turn = 0; turn < 20; turn++) {
    const before = order.length;
    await nextTask(true);
    const given = order.length - before;
    assert(given <= 4, `${given} messages of 1 ms in one turn`);
  }
  close();
});

Deno.test("the ports of one thread have the messages of a turn together", async () => {
  const { counts, close } = floods(COUNT, { capacity: 256, turnCount: 100, turnTime: Infinity });
  const sum = () => counts.reduce((all, count) => all + count, 0);
  await until(() => counts.every((count) => count > 0)); // all ports have begun
  const begun = [...counts];
  for (let turn = 0; turn < 100; turn++) {
    const before = sum();
    await nextTask(true);
    const given = sum() - before;
    assert(given <= 100, `${given} messages in one turn`);
  }
  close();
  const got = counts.map((count, n) => count - begun[n]!);
  // No port is ahead by more than one round and the rest of another.
  assert(Math.min(...got) > 100 && Math.max(...got) - Math.min(...got) <= 32, `${got}`);
});

Deno.test("where a turn has time for one message, each port has its turn", async () => {
  const { order, close } = floods(8, { capacity: 256, turnTime: 1 }, () => busy(1));
  await until(() => order.length >= 56);
  close();
  const round = order.slice(16, 24); // all ports have begun
  assertEquals(round.toSorted(), [0, 1, 2, 3, 4, 5, 6, 7]);
  assertEquals(order.slice(24, 56), [...round, ...round, ...round, ...round]);
});

/** Stands for a port's delivery in the rota. */
function served(name: string, order: string[], ...standings: Standing[]): Served {
  const { inlet } = Port.create().reader;
  return {
    endpoint: inlet.endpoint,
    what: inlet,
    keeps: true,
    limits: { turnCount: 100, turnTime: Infinity },
    noteAsked: () => false,
    serve() {
      order.push(name);
      return standings.shift() ?? AWAY;
    },
    sleep: () => true,
  };
}

Deno.test("serve: who had nothing of a turn comes before what has come since", async () => {
  const order: string[] = [];
  await nextTask(true);
  serve(served("late", order, LATE));
  serve(served("more", order, MORE, LATE));
  for (let tick = 0; tick < 10; tick++) await undefined;
  assertEquals(order, ["late"]);
  serve(served("new", order)); // while the event loop turns
  await nextTask(true);
  await nextTask(true);
  for (let tick = 0; tick < 10; tick++) await undefined;
  assertEquals(order.slice(1), ["late", "more", "more", "more", "new"]);
});

Deno.test("[wait.spin_record] serve: what has come before a wait was not waited for", async () => {
  const order: string[] = [];
  let comes = 2;
  const look = () => comes-- > 0;
  const lookAround = () => false;
  const what = { peer: 1, look, lookAround, arm() {}, stayArmed() {}, disarm() {} };
  const noteAsked = () => order.push("asked") < 0;
  serve({ ...served("served", order, DRY, DRY, DRY), what, noteAsked });
  for (let tick = 0; tick < 10; tick++) await undefined;
  assertEquals(order.slice(0, 4), ["served", "served", "served", "asked"]);
});

Deno.test("serve: what a listener sends a few promises later is seen before a sleep", async () => {
  const order: string[] = [];
  let hasSent = false;
  let isSeen = false;
  const one: Served = {
    ...served("served", order, DRY),
    noteAsked() {
      isSeen = hasSent;
      hasSent = false;
      return isSeen;
    },
    sleep: () => order.push(isSeen ? "slept" : "slept too soon") > 0,
  };
  const { serve: deliver } = one;
  one.serve = () => {
    // Like a method that returns the promise of a call, inside a method that awaits it.
    (async () => await (async () => await undefined)())().then(() => hasSent = true);
    return deliver();
  };
  serve(one);
  for (let tick = 0; tick < 20; tick++) await undefined;
  assertEquals(order, ["served", "slept"]);
});

Deno.test("a port with a smaller share than the others still has it in each turn", async () => {
  const small = floods(1, { capacity: 256, turnCount: 2, turnTime: Infinity });
  const large = floods(3, { capacity: 256, turnCount: 100, turnTime: Infinity });
  for (let turn = 0; turn < 50; turn++) await nextTask(true);
  small.close();
  large.close();
  assert(small.counts[0]! >= 80, `${small.counts}, ${large.counts}`);
  assert(Math.min(...large.counts) >= 400, `${small.counts}, ${large.counts}`);
});

Deno.test("a flooded port of a hub starves neither the others nor other ports", async () => {
  const hub = Hub.create<Any>(8, { capacity: 256 });
  const clients = hub.ports.map(({ peerIndex }) =>
    Port.attach<Any>(hub.memory, { endpoint: peerIndex })
  );
  const [here, there] = ports();
  const seen: unknown[] = [];
  let floods = 0;
  for (const [n, port] of hub.ports.entries()) {
    port.onmessage = ({ data }) => {
      if (n !== 0) seen.push(data);
      else {
        floods++;
        clients[0]!.write(0);
      }
    };
  }
  here.onmessage = ({ data }) => seen.push(data);
  clients[0]!.writeMany([0, 0, 0]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (let n = 1; n < 8; n++) {
    const before = floods;
    clients[n]!.write(`hub ${n}`);
    there.write(`port ${n}`);
    await until(() => seen.length === 2 * n);
    // Each turn has 256 messages.
    assert(floods > before && floods - before < TURNS * 256, `${floods - before} messages`);
    assertEquals(seen.slice(-2).map(String).toSorted(), [`hub ${n}`, `port ${n}`]);
  }
  hub.close();
  here.close();
});

Deno.test("an error inside of one port's delivery leaves the others as they are", async () => {
  const unhandled: string[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason.message);
  };
  addEventListener("unhandledrejection", note);
  const [a, b] = ports();
  const [c, d] = ports();
  try {
    const seen: unknown[] = [];
    a.onmessage = () => {};
    c.onmessage = ({ data }) => seen.push(data);
    a.reader.tryRead = () => {
      throw new Error("of our own");
    };
    b.write(1);
    d.write(2);
    await until(() => seen.length === 1);
    d.write(3);
    await until(() => seen.length === 2 && unhandled.length === 1);
    assertEquals([seen, unhandled], [[2, 3], ["of our own"]]);
  } finally {
    removeEventListener("unhandledrejection", note);
    a.close();
    c.close();
  }
});
