import { assertEquals } from "@std/assert";
import type { Request, Scenario } from "../contract.ts";
import { Crew } from "./driver.ts";
import type { Order, Peer } from "./peer.ts";
import type { Place } from "./place.ts";

const SCENARIO: Scenario = {
  name: "echo",
  payload: "bytes-64",
  size: 64,
  format: "bytes",
  ends: "workers",
  wait: "spin",
  pin: "free",
  duration_ms: 1,
  warmup_ms: 1000,
  again_ms: 30,
};
const REQUEST: Request = { id: 1, peer: "p", scenario: SCENARIO, repetition: 0 };
const PEER = {
  prepare: () => ({ a: { value: "for a" }, b: { value: "for b" } }),
} as unknown as Peer;

Deno.test("a crew keeps its threads, and tells them to warm up once", async () => {
  const orders: Order[] = [];
  let started = 0;
  let closed = 0;
  const place = {
    startPlayer() {
      started++;
      return {
        play: (order: Order) => Promise.resolve((orders.push(order), { count: orders.length })),
        close: () => closed++,
      };
    },
  } as unknown as Place;
  const crew = new Crew(PEER, place);
  await crew.play(REQUEST);
  await crew.play(REQUEST);
  assertEquals([started, closed], [2, 0]);
  assertEquals(orders.map(({ scenario }) => scenario.warmup_ms), [1000, 1000, 30, 30]);
  assertEquals(orders.slice(0, 2).map(({ gear }) => gear).toSorted(), ["for a", "for b"]);
  assertEquals(new Set(orders.map(({ control }) => control)).size, 2);
  crew.close();
  assertEquals(closed, 2);
});

Deno.test("a peer that brings its own thread starts it, and plays alone", async () => {
  const roles: string[] = [];
  const player = {
    play: ({ role }: Order) => Promise.resolve((roles.push(role), {})),
    close: () => {},
  };
  const peer = { ...PEER, alone: true, startPlayer: () => Promise.resolve(player) };
  const crew = new Crew(peer, {} as Place);
  await crew.play(REQUEST);
  assertEquals(roles, ["a"]);
});

Deno.test("where both ends are on one worker, it plays alone", async () => {
  const roles: string[] = [];
  const player = {
    play: ({ role }: Order) => Promise.resolve((roles.push(role), {})),
    close: () => {},
  };
  const crew = new Crew(PEER, { startPlayer: () => player } as unknown as Place);
  await crew.play({ ...REQUEST, scenario: { ...SCENARIO, ends: "worker" } });
  assertEquals(roles, ["a"]);
});
