import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { Arena } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { NO_MESSAGE } from "../crc32.ts";
import { Wrong } from "../verdict.ts";
import { CROWD_PLANS } from "./cases.ts";
import { End } from "./end.ts";
import { gather } from "./level.ts";
import { type CrowdPlan, Expected, judgeReader, type Role } from "./plan.ts";

/** A testee that says so of itself, and replies so to every command. */
function fake(hello: object, reply: object): Connection {
  return { hello, newHandle: () => 1, send: () => Promise.resolve(reply) } as unknown as Connection;
}

Deno.test("judgeReader: numbers of messages that nobody has written end in a fact", () => {
  const far = 2 ** 32 - 1;
  const facts = (plan: CrowdPlan, role: Role, record: [number, number, number][]) => {
    const ran = { count: record.length, size: 0, crc32: 0, end: role.end, record };
    const problems = judgeReader(plan, role, "reader 1", ran, new Expected(plan), "", 0);
    return problems.map(({ text }) => text).join();
  };
  const held = CROWD_PLANS.find(({ id }) => id === "live/fanout_hold_leaves")!;
  const again: Role = { ...held.readers[0]!, from: 40 };
  assertMatch(facts(held, again, [[far, 1, 0]]), /message 4294967295 of 300 stands where/);
  const lossy = CROWD_PLANS.find(({ id }) => id === "live/fanout_lose_killed")!;
  const { reason: _, ...role } = lossy.readers[0]!;
  const lost: [number, number, number] = [far, NO_MESSAGE, 0];
  assertMatch(facts(lossy, role, [lost, [far, 1, 0]]), /message 4294967295 of 8000 stands where/);
  assertMatch(facts(lossy, role, [lost]), /read and lost: expected 8000, got 4294967295/);
});

Deno.test("End.changed: what fails before anybody waits for it is told of then", async () => {
  const connection = fake({}, { error: { code: "wait.timeout" } });
  const change = new End({ index: 0, connection }, 1).changed(1);
  await new Promise((resolve) => setTimeout(resolve));
  await assertRejects(() => change, Wrong, "testee 1 cannot wait for a change: wait.timeout");
});

Deno.test("gather: where the writer cannot be there, no reader takes its place", async () => {
  const hellos = [["bytes"], ["file"], ["file"]].map((carriers) => ({ carriers }));
  const arena = (order: number[]) => {
    const connect = (index: number) => Promise.resolve(fake(hellos[order[index]!]!, {}));
    return { folder: "/", connect } as unknown as Arena;
  };
  const seats = async (order: number[]) => {
    const seated = await gather(arena(order), 3, () => undefined);
    return Array.isArray(seated) ? seated.map(({ index }) => index) : seated;
  };
  const declined = { status: "declined" as const, why: ["has no carrier file"] };
  assertEquals(await seats([0, 1, 2]), { ...declined, by: 0 });
  assertEquals(await seats([1, 0, 2]), [0, 2]);
});
