import { assertEquals } from "@std/assert";
import { openDock } from "./dock.ts";

Deno.test("openDock: a FIFO has its reader at once, however slowly that starts", async () => {
  const folder = await Deno.makeTempDir({ prefix: "millrace-dock-" });
  const path = Deno.env.get("PATH")!;
  const slow = `#!/bin/sh\nsleep 0.3\nPATH=${path} exec cat "$@"\n`;
  await Deno.writeTextFile(`${folder}/cat`, slow, { mode: 0o700 });
  Deno.env.set("PATH", `${folder}:${path}`);
  try {
    const dock = await openDock("fifo", folder);
    const { path: source, path_out: target } = dock.transport as Record<string, string>;
    const wire = await dock.wire;
    const input = Deno.openSync(source!, { read: true });
    const output = Deno.openSync(target!, { write: true });
    dock.close(); // as when both testees have opened their ends
    output.writeSync(Uint8Array.of(1, 2, 3));
    assertEquals(await wire.read(), Uint8Array.of(1, 2, 3));
    assertEquals(await wire.write(Uint8Array.of(4)), true);
    assertEquals([input.readSync(new Uint8Array(9))], [1]);
    output.close();
    assertEquals(await wire.read(), undefined);
    wire.kill();
    input.close();
  } finally {
    Deno.env.set("PATH", path);
    await Deno.remove(folder, { recursive: true });
  }
});
