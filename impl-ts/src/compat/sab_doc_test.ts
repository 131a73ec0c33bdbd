import { assert, assertEquals } from "@std/assert";
import { listSources, runExamples } from "../testing/examples_fixture.ts";

Deno.test("the examples in the doc comments run", async () => {
  const directory = import.meta.dirname!;
  assertEquals(await runExamples(directory, listSources(directory)), 14);
});

Deno.test("the global has what the module has", async () => {
  const module = await import("./sab_message_port.ts");
  assertEquals("SABMessagePortLib" in globalThis, false);
  await import("./sab_message_port_global.ts");
  const { SABMessagePortLib } = globalThis as unknown as { SABMessagePortLib: typeof module };
  const { SABPipe, SABMessagePort, MWChannel } = SABMessagePortLib;
  assert(SABPipe === module.SABPipe && SABMessagePort === module.SABMessagePort);
  assert(MWChannel === module.MWChannel);
});
