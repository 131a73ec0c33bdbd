import { assert } from "@std/assert";
import { listSources, runExamples } from "./fixture.ts";

Deno.test("the examples in the doc comments run", async () => {
  const directory = import.meta.dirname!;
  assert(await runExamples(directory, listSources(directory)) >= 8);
});
