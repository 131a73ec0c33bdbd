import { assertEquals } from "@std/assert";
import { printedApart } from "../testing/fixture.ts";

Deno.test("bytes move without TextDecoder, TextEncoder, performance and setTimeout", async () => {
  const printed = await printedApart("pipe/bare_fixture.ts");
  assertEquals(printed.trim(), "[null,null,2,2,3,5,6]");
});
