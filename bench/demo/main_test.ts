// The demo as its user meets it: exit codes, output, and how it ends.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { buildWasm } from "../../tools/wasm_worker.ts";
import { compileWorker } from "./compile.ts";

const main = new URL("./main.ts", import.meta.url).href;
const DEADLINE_MS = 180_000;

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Starts the demo; killed when it has not ended by the deadline. */
function start(...args: string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", main, ...args],
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(DEADLINE_MS),
  }).spawn();
}

async function demo(...args: string[]): Promise<Outcome> {
  const { code, stdout, stderr } = await start(...args).output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

/** Runs `use` with a file of `size` bytes that look random. */
async function withFile(size: number, use: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "millrace_demo_" });
  try {
    const bytes = new Uint8Array(size);
    for (let index = 0; index < size; index++) bytes[index] = Math.imul(index, 2654435761) >>> 24;
    await Deno.writeFile(path, bytes);
    await use(path);
  } finally {
    await Deno.remove(path);
  }
}

function digestOf(out: string, row: string): string {
  return out.match(new RegExp(`${row} +([0-9a-f]{64})`))?.[1] ?? "none";
}

Deno.test("demo: its worker is, byte for byte, the one that build.zig makes", async () => {
  const built = await buildWasm("demo", "demo_worker");
  assertEquals(await Deno.readFile(await compileWorker()), built);
});

Deno.test("demo: what comes back has the file's own digest", async () => {
  await withFile(1_500_000, async (path) => {
    const { code, out, err } = await demo(path);
    assertEquals(code, 0, err);
    const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
    const expected = new Uint8Array(digest).toHex();
    assertEquals(digestOf(out, "sent SHA-256"), expected);
    assertEquals(digestOf(out, "came back"), expected);
    assertMatch(out, /messages +\d+, 1\.5 MB/);
    assertMatch(out, /118-byte JSON echo, Millrace +p50 /);
    assertMatch(out, /118-byte JSON echo, MessagePort +p50 /);
  });
});

Deno.test("demo: a byte flipped in the ring makes the digests differ", async () => {
  await withFile(300_000, async (path) => {
    const { code, out } = await demo("--corrupt", "3", path);
    assertEquals(code, 1);
    assert(digestOf(out, "sent SHA-256") !== digestOf(out, "came back"));
  });
});

Deno.test("demo: a message that does not exist cannot be corrupted", async () => {
  await withFile(10, async (path) => {
    const { code, err } = await demo("--corrupt", "2000", path);
    assertEquals(code, 2);
    assertMatch(err, /demo: Cannot corrupt message 2000: the stream has 1 message\n/);
  });
});

Deno.test("demo: an empty file is a stream of no bytes", async () => {
  await withFile(0, async (path) => {
    const { code, out, err } = await demo(path);
    assertEquals(code, 0, err);
    assertMatch(out, /messages +0, 0 B/);
    assertEquals(
      digestOf(out, "came back"),
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
  });
});

Deno.test("demo: a file that cannot be read is one line and code 2", async () => {
  for (const path of ["/no/such/file", "/"]) {
    const { code, out, err } = await demo(path);
    assertEquals([code, out], [2, ""]);
    assertMatch(err, new RegExp(`^demo: Cannot read ${path}: .+\n$`));
  }
});

Deno.test("demo: a wrong argument is one line and code 2", async () => {
  for (
    const args of [
      ["--corrupt", "0"],
      ["--corrupt", "x"],
      ["--corrupt"],
      ["--no"],
      ["a", "b"],
      ["--page", "file"],
      ["--page", "--corrupt", "1"],
      ["--page", "--port", "0"],
      ["--page", "--port", "65536"],
      ["--port", "8000"],
      ["--no-open"],
    ]
  ) {
    const { code, out, err } = await demo(...args);
    assertEquals([code, out], [2, ""], args.join(" "));
    assertMatch(err, /^demo: .+\n$/);
  }
});

Deno.test("demo: an interrupt in the middle of the stream ends it with code 130", async () => {
  await withFile(0, async (path) => {
    // Sparse, and so large that only the interrupt can end this run.
    await Deno.truncate(path, 64 * 2 ** 30);
    const child = start(path);
    const reader = child.stderr.getReader();
    const decoder = new TextDecoder();
    let seen = "";
    while (!/Streaming/.test(seen)) {
      const { value, done } = await reader.read();
      assert(!done, `it ended before it streamed: ${seen}`);
      seen += decoder.decode(value);
    }
    child.kill("SIGINT");
    const { code } = await child.status;
    assertEquals(code, 130);
    await reader.cancel();
    await child.stdout.cancel();
  });
});

Deno.test("demo --page: serves isolated pages at the address it prints, until Ctrl-C", async () => {
  const child = start("--page", "--no-open");
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  assertMatch(value, /^http:\/\/127\.0\.0\.1:\d+\/\n$/);
  const look = async (path: string) => {
    const { status, headers, body } = await fetch(new URL(path, value.trim()));
    await body?.cancel();
    const isolation = ["cross-origin-opener-policy", "cross-origin-embedder-policy"];
    return [status, headers.get("content-type"), ...isolation.map((name) => headers.get(name))];
  };
  const isolated = ["same-origin", "require-corp"];
  assertEquals(await look("/"), [200, "text/html; charset=utf-8", ...isolated]);
  assertEquals(await look("/live/asker.js"), [200, "text/javascript", ...isolated]);
  for (const path of ["/live/none.js", "/serve.ts", "/live/../serve.ts", "/%2e%2e/serve.ts"]) {
    assertEquals(await look(path), [404, "text/plain", ...isolated], path);
  }
  child.kill("SIGINT");
  assertEquals((await child.status).code, 130);
  await reader.cancel();
  assertMatch(await new Response(child.stderr).text(), /^Open this address in a browser; /);
});

Deno.test("demo --page: a port that is taken is one line and code 1", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { code, out, err } = await demo("--page", "--no-open", "--port", `${taken.addr.port}`);
  assertEquals([code, out], [1, ""]);
  assertMatch(err, new RegExp(`^demo: Cannot serve on port ${taken.addr.port}: .+\n$`));
});
