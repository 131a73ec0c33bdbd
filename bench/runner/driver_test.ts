import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import type { Answer, Scenario } from "../contract.ts";
import { Driver } from "./drivers.ts";

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
