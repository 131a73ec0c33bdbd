import { assertEquals } from "@std/assert";

Deno.test("properties need no TextDecoder, TextEncoder, performance or setTimeout", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "-A", "property_bare_fixture.ts"],
    cwd: import.meta.dirname!,
    signal: AbortSignal.timeout(60_000),
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const came = '[["größe","peaks"],null,8,[1.5,-2,0,0],1,16,false]';
  assertEquals([code, text(stdout).trim()], [0, came], text(stderr));
});
