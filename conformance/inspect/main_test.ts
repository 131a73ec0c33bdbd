// ./millrace inspect as a program: its inputs, its outputs, its exit codes.

import { assert, assertEquals } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { fileURLToPath } from "node:url";
import { toHex, toImage } from "../reference/bytes.ts";
import { pipe, whole } from "../reference/builder.ts";
import { put } from "../reference/encode.ts";
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import { portGeometry } from "../../impl-ts/src/mod.ts";
import { partOfMailbox, waitingPipe, wrongHead } from "./golden_fixture.ts";
import type { Inspection } from "./mod.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
/** Only a hang takes so long. */
const HANG_MS = 30_000;

interface Outcome {
  code: number;
  output: string;
  errors: string;
}

function start(args: string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", MAIN, ...args],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
    env: { NO_COLOR: "1" },
  }).spawn();
}

async function end(process: Deno.ChildProcess): Promise<Outcome> {
  const timer = setTimeout(() => process.kill("SIGKILL"), HANG_MS);
  const { code, stdout, stderr } = await process.output();
  clearTimeout(timer);
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout), errors: decoder.decode(stderr) };
}

async function run(args: string[], input?: Uint8Array | string): Promise<Outcome> {
  const process = start(args);
  const writer = process.stdin.getWriter();
  if (input !== undefined) {
    await writer.write(typeof input === "string" ? new TextEncoder().encode(input) : input);
  }
  await writer.close();
  return await end(process);
}

/** A file with these bytes, for as long as the test takes. */
async function withFile(bytes: Uint8Array, test: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeFile(path, bytes);
    await test(path);
  } finally {
    await Deno.remove(path);
  }
}

Deno.test("inspect prints a file, and ends with 0 where nothing is wrong", () =>
  withFile(waitingPipe(), async (path) => {
    const { code, output, errors } = await run([path]);
    assertEquals([code, errors], [0, ""]);
    assert(output.startsWith(`${path}: a pipe in 1,280 bytes\n`), output);
    assert(output.includes("endpoint 0 asks to be rung when head reaches 800"), output);
  }));

Deno.test("inspect ends with 1 where something is wrong", async () => {
  const { code, output } = await run([toHex(wrongHead())]);
  assertEquals(code, 1);
  assert(output.includes("FAULT ring.cursor (16) at 0x200, channel 0\n  tail 32"), output);
  assert(output.includes("[ring.cursor] An endpoint MUST check each cursor"), output);
});

Deno.test("inspect reads standard input, bytes or a dump", async () => {
  const bytes = await run(["-"], partOfMailbox());
  const image = await run(["-"], JSON.stringify(toImage(partOfMailbox())));
  assertEquals(bytes, image);
  assertEquals(bytes.code, 0);
  assert(bytes.output.startsWith("standard input: a mailbox in 48 bytes\n"), bytes.output);
});

Deno.test("inspect --json prints what inspect.schema.json says", async () => {
  const schema = await Deno.readTextFile(new URL("../inspect.schema.json", import.meta.url));
  const validate = new Ajv2020({ allErrors: true, strict: false }).compile(JSON.parse(schema));
  for (const bytes of [waitingPipe(), wrongHead(), partOfMailbox()]) {
    const { output } = await run(["--json", "-"], bytes);
    const found: Inspection = JSON.parse(output);
    assertEquals(found.memory, bytes.length);
    const wrong = { ...found, memory: -1 };
    assert(!validate(wrong), "the schema asks for nothing");
    assert(validate(found), JSON.stringify(validate.errors));
  }
});

Deno.test("inspect takes its options", async () => {
  const hex = toHex(waitingPipe());
  const raw = await run(["--raw", "--channel", "0", hex]);
  assert(/^04b0 {2}67 72 c3 bc .*payload "grün/m.test(raw.output), raw.output);
  const few = await run(["--limit=1", "--at", "2026-02-03T04:05:06Z", "--color", hex]);
  assert(few.output.includes("… 3 frames more"), few.output);
  assert(few.output.includes("2026-02-03") && few.output.includes("\x1b[1m"), few.output);
  const forced = await run(["--mailbox", hex]);
  assertEquals(forced.code, 1);
  assert(forced.output.includes("FAULT mailbox.signal"), forced.output);
  const blank = await run(["--channel", "0", "00"]);
  assert(blank.code === 1 && blank.output.includes("FAULT segment.size"), blank.output);
  const help = await run(["--help"]);
  assert(help.code === 0 && help.output.startsWith("Usage: ./millrace inspect"));
});

const refused: [string, string[], RegExp][] = [
  ["no input", [], /One FILE, HEX or - is needed, not 0/],
  ["an unknown option", ["--colour", "00"], /Unknown option: --colour/],
  ["an option without its value", ["00", "--limit"], /--limit needs a value/],
  ["a limit that is no number", ["--limit", "many", "00"], /--limit must be a number from 0/],
  ["two tracks", ["--segment", "--mailbox", "00"], /Only one of --segment, --mailbox/],
  ["a time that is none", ["--at", "noon", "00"], /--at must be a time/],
  ["what is neither a file nor hexadecimal", ["nowhere.bin"], /There is no file "nowhere\.bin"/],
  ["a folder", [fileURLToPath(new URL(".", import.meta.url))], /no regular file/],
  ["a channel that is not there", ["--channel", "1", toHex(waitingPipe())], /no channel 1/],
  ["a file to watch that is not there", ["--watch", "nowhere.bin"], /Cannot watch nowhere\.bin/],
];

Deno.test("inspect refuses what it cannot use, with 2 and one clear line", async () => {
  for (const [name, args, fact] of refused) {
    const { code, output, errors } = await run(args);
    assertEquals([code, output], [2, ""], name);
    assert(fact.test(errors) && errors.trim().split("\n").length === 2, `${name}: ${errors}`);
  }
});

Deno.test("the example of mod.ts runs", async () => {
  const module = new URL("mod.ts", import.meta.url);
  const text = await Deno.readTextFile(module);
  const [, example] = /^ \* ```ts\n(.*?)^ \* ```$/ms.exec(text)!;
  const code = example!.replace(/^ \* ?/gm, "").replace(
    "./conformance/inspect/mod.ts",
    `${module}`,
  );
  await withFile(new TextEncoder().encode(code), async (path) => {
    const args = ["run", "-A", "--ext=ts", path];
    const process = new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "piped" });
    const { code, output, errors } = await end(process.spawn());
    assertEquals([code, errors], [0, ""]);
    assert(/^segment\.unready\nmemory without endpoints in 1,280 bytes\n/.test(output), output);
  });
});

/** Reads what a process prints until it has printed that. */
async function waitFor(process: Deno.ChildProcess, fact: string): Promise<void> {
  const timer = setTimeout(() => process.kill("SIGKILL"), HANG_MS);
  let text = "";
  const reader = process.stdout.getReader();
  while (!text.includes(fact)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`It ended without ${fact}: ${text}`);
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  clearTimeout(timer);
}

Deno.test("inspect --watch prints what changes, and ends at a signal as the last look does", () => {
  const { bytes, control, data } = pipe({ states: [1, 1], frames: [whole("hi")] });
  return withFile(bytes, async (path) => {
    const process = start(["--watch", "--interval", "20", path]);
    await process.stdin.close();
    await waitFor(process, '"hi"');
    put(bytes, data, "frame_header", "kind", 9);
    Deno.writeFileSync(path, bytes);
    await waitFor(process, "FAULT frame.kind");
    put(bytes, control, "ring_control", "tail", 0);
    Deno.writeFileSync(path, bytes);
    await waitFor(process, "empty");
    process.kill("SIGINT");
    const { code, errors } = await end(process);
    assertEquals([code, errors], [0, ""]);
  });
});

Deno.test({
  name: "inspect --watch finds no fault in a file that two endpoints are using",
  // Segments in files need Linux.
  ignore: Deno.build.os !== "linux",
  async fn() {
    const path = `/dev/shm/millrace-inspect-${crypto.randomUUID()}`;
    const geometry = portGeometry({ capacity: 1024 });
    using file = SegmentFile.create(path, geometry, { endpoint: 0 });
    using peer = SegmentFile.open(path, { endpoint: 1 });
    using a = file.port<string>();
    using b = peer.port<string>();
    const process = start(["--watch", "--interval", "10", path]);
    await process.stdin.close();
    const outcome = end(process);
    const until = Date.now() + 2000;
    let count = 0;
    while (Date.now() < until) {
      for (let burst = 0; burst < 500; burst++) {
        while (a.tryWrite("x".repeat(count % 300))) count += 1;
        while (b.tryRead() !== undefined) { /* only to make room */ }
        if (burst % 7 === 0) a.tryWrite("stays for a moment");
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    process.kill("SIGINT");
    const { code, output } = await outcome;
    Deno.removeSync(path);
    assertEquals(code, 0);
    assert(!output.includes("FAULT"), output.slice(output.indexOf("FAULT"), 500));
    assert(output.split("a port in").length > 5, "it has hardly looked");
    assert(count > 1000);
  },
});
