import { assertEquals } from "@std/assert";
import { printedApart } from "../testing/fixture.ts";

Deno.test("properties need no TextDecoder, TextEncoder, performance or setTimeout", async () => {
  const printed = await printedApart("property/bare_fixture.ts");
  const came = '[["größe","peaks"],null,8,[1.5,-2,0,0],1,16,false]';
  assertEquals(printed.trim(), came);
});
