import { assert, assertEquals } from "@std/assert";
import { findBun } from "./bun.ts";
import { run } from "./run.ts";

const HERE = import.meta.dirname!;

Deno.test("Bun is pinned apart from what every task fetches", async () => {
  for (const name of ["deno.json", "deno.lock"]) {
    assert(!(await Deno.readTextFile(`${HERE}/../${name}`)).includes("@oven/"), name);
  }
  const lock = JSON.parse(await Deno.readTextFile(`${HERE}/toolchain/bun.lock`));
  assertEquals(Object.keys(lock.npm).length, 1);
});

const isThere = Deno.build.os === "linux" && Deno.build.arch === "x86_64";

Deno.test("findBun: the one of the lock file", { ignore: !isThere }, async () => {
  const lock = JSON.parse(await Deno.readTextFile(`${HERE}/toolchain/bun.lock`));
  const [version] = Object.values(lock.specifiers);
  const options = { cwd: HERE, timeoutMs: 60_000, echo: false };
  const { output } = await run([(await findBun())!, "--version"], options);
  assertEquals(output.trim(), version);
});
