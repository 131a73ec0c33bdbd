// Runs the example of calls in C: two processes that call one another over a file, and over a
// socket.

import { assertEquals, assertMatch } from "@std/assert";
import { fileURLToPath } from "node:url";
import { run } from "../../tools/run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OUT = `${ROOT}zig-out`;
const BUILD = { cwd: ROOT, timeoutMs: 10 * 60_000, echo: false };
/** Bounds each process; its waits are shorter. */
const TIMEOUT_MS = 60_000;

async function succeed(...command: string[]): Promise<string> {
  const { code, output } = await run(command, BUILD);
  assertEquals(code, 0, `${command.join(" ")} failed:\n${output}`);
  return output;
}

Deno.test({
  name: "call: a service and its client call one another",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const folder = await Deno.makeTempDir({ dir: "/dev/shm", prefix: "millrace-call-" });
    try {
      await succeed("zig", "build", "lib");
      const strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"];
      const source = [`-I${OUT}/include`, `${ROOT}impl-zig/examples/call.c`];
      const program = `${folder}/call`;
      await succeed("zig", "cc", ...strict, ...source, `${OUT}/lib/libmillrace.a`, "-o", program);
      const bounded = { cwd: folder, timeoutMs: TIMEOUT_MS, echo: false };
      for (const path of [`${folder}/port`, `unix:${folder}/socket`]) {
        const [service, client] = await Promise.all([
          run([program, "service", path], bounded),
          run([program, "client", path, "2000"], bounded),
        ]);
        const [speed, ...rest] = client.output.trim().split("\n");
        assertMatch(speed!, /^[\d.]+ us for a call$/, client.output);
        assertEquals(rest, [
          "0 to 99 are 4950",
          "Hello, the client!",
          "Oops: It broke.",
          "The callee serves no method of this name.",
        ], path);
        assertEquals([service.code, service.output, client.code], [0, "", 0], path);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
