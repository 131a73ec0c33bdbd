import { assert } from "@std/assert";
import { runExamples } from "../testing/examples_fixture.ts";
import { test } from "./host_fixture.ts";

test("the examples in the doc comments run", async () => {
  // Without any permission except those that the documentation names.
  const permissions = ["--allow-ffi", "--allow-read=/dev/shm", "--allow-write=/dev/shm"];
  const files = ["mod.ts", "segment_file.ts", "system_error.ts"];
  assert(await runExamples(import.meta.dirname!, files, ["--no-prompt", ...permissions]) >= 4);
});

test("create and open refuse without the permissions", async () => {
  const script = `
    import { SegmentFile } from "./mod.ts";
    try {
      SegmentFile.open("/dev/shm/none", { endpoint: 0 });
    } catch (error) {
      console.log(error.name, error.code ?? "");
    }`;
  const said = async (...allowed: string[]) => {
    const process = new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-check", "--no-prompt", ...allowed, "-"],
      cwd: import.meta.dirname!,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = process.stdin.getWriter();
    await writer.write(new TextEncoder().encode(script));
    await writer.close();
    return new TextDecoder().decode((await process.output()).stdout).trim();
  };
  const files = ["--allow-read", "--allow-write"];
  assert(await said(...files) === "NotCapable");
  assert(await said("--allow-ffi", "--allow-read") === "NotCapable");
  assert(await said("--allow-ffi", "--allow-write") === "NotCapable");
  assert(await said("--allow-ffi", ...files) === "SegmentError segment.missing");
});
