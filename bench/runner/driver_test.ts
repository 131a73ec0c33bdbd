import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { requiresAll } from "../../tools/test_counts.ts";
import type { Answer, Scenario } from "../contract.ts";
import { Driver, openWorkshop } from "./drivers.ts";

const SCENARIO: Scenario = {
  name: "echo",
  payload: "bytes-64",
  size: 64,
  format: "bytes",
  ends: "threads",
  wait: "spin",
  pin: "free",
  duration_ms: 1,
  warmup_ms: 1,
};
const HELLO = '{"driver":{"name":"x","version":"1","place":"native","peers":["p"]}}';

/** A driver in shell: says hello, and does the rest for each line. */
function driver(rest: string, hello = `echo '${HELLO}'`): Driver {
  const script = `${hello}; while read -r line; do ${rest}; done`;
  return new Driver({ name: "x", command: ["sh", "-c", script] });
}

function ask(driver: Driver, id = 1): Promise<Answer> {
  return driver.ask({ id, peer: "p", scenario: SCENARIO, repetition: 0 });
}

Deno.test("a driver answers, and ends when it is let go", async () => {
  const good = driver(`echo '{"id":1,"decline":"no"}'`);
  assertEquals((await good.hello()).peers, ["p"]);
  assertEquals(await ask(good), { id: 1, decline: "no" });
  await good.stop();
});

Deno.test("a driver that ends in the middle is an error, and is started again", async () => {
  const bad = driver("exit 3");
  assertEquals("error" in await ask(bad), true);
  assertEquals("error" in await ask(bad), true);
  await bad.stop();
});

Deno.test("a driver that answers something else is an error", async () => {
  for (const [line, text] of [[`{"id":9,"decline":"no"}`, "answered 9"], ["{", "JSON"]]) {
    const bad = driver(`echo '${line}'`);
    const answer = await ask(bad);
    assertStringIncludes("error" in answer ? answer.error : "", text as string);
    await bad.stop();
  }
});

Deno.test("a driver that does not start says so", async () => {
  const bad = driver("true", "exit 1");
  await assertRejects(() => bad.hello(), Error, "does not start");
});

/** Garbage is collected all the time: what nobody holds is gone. */
const COLLECT = "--gc-interval=1000";
const REQUEST = {
  id: 1,
  peer: "thread-stream",
  scenario: {
    name: "stream",
    payload: "json-500",
    size: 500,
    format: "json",
    ends: "workers",
    wait: "spin",
    pin: "free",
    duration_ms: 5,
    warmup_ms: 2,
    window: 4096,
  },
  repetition: 0,
} as const;

Deno.test("thread-stream's report is not lost with its stream", async () => {
  const workshop = await openWorkshop(new Set(["node"]), undefined);
  try {
    const [kind] = workshop.kinds;
    if (kind?.missing !== undefined && !requiresAll()) return;
    const { command: [program, ...args], ...rest } = kind!.command(false);
    // The library has waits of its own that may fail, which is no fault of the driver.
    const answers: Answer[] = [];
    while (answers.length < 2 && !answers.some((answer) => "result" in answer)) {
      const driver = new Driver({ ...rest, command: [program!, COLLECT, ...args] });
      answers.push(await driver.ask(REQUEST));
      await driver.stop();
    }
    assert(answers.some((answer) => "result" in answer), JSON.stringify(answers));
  } finally {
    await workshop.close();
  }
});
