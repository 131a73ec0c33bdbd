import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { Arena, Field, FieldPlan } from "../arena.ts";
import { deno } from "../carriers/deno.ts";
import type { Connection } from "../connection.ts";
import { NO_MESSAGE } from "../crc32.ts";
import { stateOf } from "../peer.ts";
import { PASS, Wrong } from "../verdict.ts";
import { ATTACHED } from "../../reference/builder.ts";
import { descriptorAt } from "../../reference/encode.ts";
import { fieldOf } from "../../reference/layout.ts";
import { CROWD_PLANS, type CrowdPlan, Expected, judgeReader, type Role } from "./cases.ts";
import { crowdCase, End, gather } from "./level.ts";

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

Deno.test("a crowd whose killed writer goes on after its end is played again", async () => {
  const plan = CROWD_PLANS.find(({ on, kills }) => on === "property" && kills === "writer")!;
  const worker = new URL("../../testees/broken/worker.ts", import.meta.url);
  const first = () => Promise.resolve({ setup: {} });
  const arena = await deno.open(["one", "other"].map((name) => ({ name, worker, first })));
  try {
    const once = lateSteps(arena, 1);
    assertEquals(await crowdCase(plan, deno.death, 2).run(once.arena), PASS);
    assertEquals(once.played, 2);
    const always = lateSteps(arena, Infinity);
    const result = await crowdCase(plan, deno.death, 2).run(always.arena);
    assertEquals(result.status, "fail");
    assertEquals(always.played, 5);
  } finally {
    await arena.close();
  }
});

/** An arena whose killed writer takes one step more after its end, in so many runs. */
function lateSteps(arena: Arena, late: number) {
  let isDue = false;
  const runs = {
    played: 0,
    arena: {
      connect: (index: number) => arena.connect(index),
      field: async (plan: FieldPlan) => {
        const field = await arena.field(plan);
        const words = field.words.bind(field);
        // The step comes before the kit looks for the first time after the writer was given up.
        field.words = () => {
          if (isDue) {
            isDue = false; // while it looks itself
            isDue = stateOf(field, 0) === ATTACHED;
            if (!isDue) step(field);
          }
          return words();
        };
        return field;
      },
      kill: async (index: number) => {
        await arena.kill(index);
        isDue = ++runs.played <= late;
      },
    } as Arena,
  };
  return runs;
}

/** Stores one version more. */
function step(field: Field): void {
  const words = field.words();
  const channel = descriptorAt(2, 0) + fieldOf("channel_descriptor", "control_offset").offset;
  const control = Atomics.load(words, channel >> 2);
  Atomics.add(words, control + fieldOf("property_control", "version").offset >> 2, 1);
}
