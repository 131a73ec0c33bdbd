import { assertEquals } from "@std/assert";

Deno.test("bytes move without TextDecoder, TextEncoder, performance and setTimeout", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "-A", "pipe_bare_fixture.ts"],
    cwd: import.meta.dirname!,
    signal: AbortSignal.timeout(60_000),
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  assertEquals([code, text(stdout).trim()], [0, "[null,null,2,2,3,5,6]"], text(stderr));
});
