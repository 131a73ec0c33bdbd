// The set-up of the tools: what it shows of what pip prints.

import { assertEquals } from "@std/assert";
import { run } from "../run.ts";

/** Has a command run that prints a line on each stream and ends with this code. */
async function shown(code: number): Promise<string[]> {
  const noisy = `import sys; print('a line of pip'); print('its warning', file=sys.stderr); ` +
    `sys.exit(${code})`;
  const script = `import install, sys, tempfile
with tempfile.TemporaryFile() as lock:
    print("ended with", install.run([sys.executable, "-c", ${JSON.stringify(noisy)}], lock, str))`;
  const command = ["python3", "-B", "-c", script];
  const options = { cwd: import.meta.dirname!, timeoutMs: 60_000, echo: false };
  const { output } = await run(command, options);
  return output.trimEnd().split("\n").sort();
}

Deno.test("install.py: lines of pip are shown if it fails, and not otherwise", async () => {
  assertEquals(await shown(0), ["ended with 0"]);
  assertEquals(await shown(3), ["a line of pip", "ended with 3", "its warning"]);
});
