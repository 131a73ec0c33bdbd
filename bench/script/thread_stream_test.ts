import { assert } from "@std/assert";
import { requiresAll } from "../../tools/test_counts.ts";
import type { Answer } from "../contract.ts";
import { Driver, openWorkshop } from "../runner/drivers.ts";

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
