import { assert, assertEquals } from "@std/assert";
import { CannotHalt, Halter } from "./halter.ts";

/** Maps a file; reads its first word in a thread that begins when a line has come. */
const PROGRAM = `
import mmap, sys, threading
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
print("mapped", flush=True)
sys.stdin.readline()
found = []
thread = threading.Thread(target=lambda: found.append(memory[0:4]))
thread.start()
thread.join()
print(found[0].hex(), flush=True)
sys.stdin.readline()
`;

Deno.test({
  name: "Halter halts a thread that has begun after it",
  ignore: Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  async fn() {
    const path = await Deno.makeTempFile();
    await Deno.truncate(path, 4096);
    const child = new Deno.Command("python3", {
      args: ["-c", PROGRAM, path],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const nextLine = async () => {
      while (!text.includes("\n")) text += (await reader.read()).value ?? "\n";
      const [first = "", ...rest] = text.split("\n");
      text = rest.join("\n");
      return first;
    };
    const writer = child.stdin.getWriter();
    const line = new TextEncoder().encode("\n");
    try {
      assertEquals(await nextLine(), "mapped");
      const halter = new Halter(child.pid, path, [{ offset: 0, access: "load" }], false);
      try {
        await writer.write(line);
        let stop: ReturnType<Halter["poll"]>;
        const deadline = performance.now() + 10_000;
        while ((stop = halter.poll()) === undefined && performance.now() < deadline);
        assert(stop !== undefined, "the load was not seen");
        assertEquals(stop.word, 0);
        assert(stop.thread !== child.pid, "the thread that has begun");
        halter.go(stop.thread);
      } finally {
        halter.release();
      }
      // It goes on.
      assertEquals(await nextLine(), "00000000");
    } catch (error) {
      if (!(error instanceof CannotHalt)) throw error;
      console.log(error.message); // the system does not allow it
    } finally {
      await writer.write(line);
      await writer.close();
      await reader.cancel();
      await child.status;
      await Deno.remove(path);
    }
  },
});
