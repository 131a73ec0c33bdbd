import { assertEquals } from "@std/assert";
import { printedApart } from "./fixture.ts";

Deno.test("bytes move without TextDecoder, TextEncoder, performance and setTimeout", async () => {
  const printed = await printedApart("pipe_bare_fixture.ts");
  assertEquals(printed.trim(), "[null,null,2,2,3,5,6]");
});
