// ./millrace top: what it makes of looks at memory that others write, and the program.

import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { fileURLToPath } from "node:url";
import { portGeometry } from "../../impl-ts/src/mod.ts";
import { meter } from "../../impl-ts/src/meter/meter.ts";
import { SegmentFile } from "../../impl-ts/src/host/mod.ts";
import type { LiveMemory } from "../inspect/live.ts";
import { pipe, whole } from "../reference/builder.ts";
import { buildFrame, buildSegment, failed, NOBODY, put, recordAt } from "../reference/encode.ts";
import { look } from "./look.ts";
import { type Figures, figuresOf } from "./rates.ts";
import { view } from "./view.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
/** Only a hang takes so long. */
const HANG_MS = 30_000;
const NOW = Date.parse("2026-02-03T04:05:06Z");

/** Memory in which something happens before each read. */
function memoryOf(bytes: Uint8Array, happen: (read: number) => void = () => {}): LiveMemory {
  let reads = 0;
  return {
    size: () => bytes.length,
    read: (offset, size) => {
      happen(reads++);
      return bytes.slice(offset, offset + size);
    },
  };
}

/** The low 32 bits of the microseconds at so many before now. */
function timeBefore(us: number): number {
  return Number(BigInt.asUintN(32, BigInt(NOW) * 1000n - BigInt(us)));
}

Deno.test("look counts what waits, and since when [meter.outside_frames]", () => {
  const time = timeBefore(1500);
  const { bytes } = pipe({
    start: 2 ** 32 - 32,
    states: [1, 1],
    frames: [
      whole("first", { time }),
      whole("second", { time: time + 1 }),
      { kind: 129, payload: new Uint8Array(16) },
    ],
  });
  const { ring } = look(memoryOf(bytes), NOW).channels[0]!;
  assertEquals([ring?.used, ring?.messages, ring?.oldest_us], [96, 2, 1500]);
  assertEquals([ring?.reader_asks, ring?.writer_asks], [false, false]);
});

Deno.test("a queue is never longer than it was [meter.outside_queue]", () => {
  const frame = buildFrame(whole("x"));
  for (let at = 0; at < 12; at++) {
    const { bytes, control } = pipe({ states: [1, 1], frames: [whole("x"), whole("x")] });
    const tail = 2 * frame.length;
    const { ring } = look(
      memoryOf(bytes, (read) => {
        // Both sides go on by a lap, after which the ring is as full as before.
        if (read !== at) return;
        put(bytes, control, "ring_control", "tail", tail + 256);
        put(bytes, control, "ring_control", "head", 256);
      }),
      NOW,
    ).channels[0]!;
    assert(ring!.used !== null && ring!.used <= tail, `${ring!.used} at ${at}`);
    assert(ring!.messages === null || ring!.messages <= 2);
  }
});

Deno.test("figuresOf reckons across 2^32, and not across owners [meter.outside_rate]", () => {
  const { bytes, control } = pipe({ start: 2 ** 32 - 64, states: [1, 1] });
  const before = look(memoryOf(bytes), NOW);
  put(bytes, control, "ring_control", "tail", 128);
  put(bytes, control, "ring_control", "head", 64);
  put(bytes, recordAt(1), "endpoint_record", "bell", 7);
  const now = look(memoryOf(bytes), NOW + 500);
  const figures = figuresOf(now, before);
  assertEquals([figures.rates, figures.rings], [[{ written: 384, read: 256 }], [0, 14]]);
  put(bytes, recordAt(1), "endpoint_record", "generation", 1);
  const later = figuresOf(look(memoryOf(bytes), NOW + 1000), before);
  assertEquals([later.rates, later.rings], [[{ written: 192, read: null }], [0, null]]);
  assertEquals(figuresOf(now, undefined).rates, [{ written: null, read: null }]);
});

Deno.test("cursors that cannot be right show no queue [meter.outside_queue]", () => {
  for (const [tail, head] of [[8, 0], [0, 8], [512, 0]] as const) {
    const { bytes, control } = pipe({ states: [1, 1] });
    put(bytes, control, "ring_control", "tail", tail);
    put(bytes, control, "ring_control", "head", head);
    const { ring } = look(memoryOf(bytes), NOW).channels[0]!;
    assertEquals([ring?.used, ring?.messages], [null, null]);
  }
});

Deno.test("look refuses what is no segment, and shows nothing of a wrong channel", () => {
  const { bytes } = pipe();
  for (const size of [0, 100, 256, 300]) {
    assertThrows(() => look(memoryOf(bytes.slice(0, size)), NOW), Error, "it is no segment");
  }
  assertThrows(() => look(memoryOf(new Uint8Array(4096)), NOW), Error, "segment.unready");
  const channels = [
    { writer: 0, reader: 1, capacity: 256 },
    { writer: 0, reader: 1, capacity: 300 },
    { writer: NOBODY, reader: 1, capacity: 256, kind: 77 },
  ];
  const found = look(memoryOf(buildSegment({ endpoints: 2, channels }).bytes), NOW);
  assertEquals(found.channels.map(({ ring }) => ring !== null), [true, false, false]);
  const [, wrong, unknown] = found.channels;
  assertStringIncludes(wrong!.fault!, "no power of two");
  assertEquals([unknown!.kind, unknown!.writer, unknown!.fault], ["kind 77", null, null]);
  assertStringIncludes(view(figuresOf(found, undefined), "x"), "any to 1");
});

Deno.test("view says who waits, and how an endpoint has ended", () => {
  const segment = pipe({ states: [1, failed("peer.lost")], frames: [whole("x")] });
  put(segment.bytes, segment.control, "ring_control", "writer_wants", 0x21);
  const text = view(figuresOf(look(memoryOf(segment.bytes), NOW), undefined), "a file");
  assertStringIncludes(text, "writer waits for room");
  assertStringIncludes(text, "failed: peer.lost");
});

/** Runs the program; `during` is called when it has printed something. */
async function run(args: string[], during?: (process: Deno.ChildProcess) => void) {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", MAIN, ...args],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => process.kill("SIGKILL"), HANG_MS);
  const decoder = new TextDecoder();
  let output = "";
  const reading = (async () => {
    for await (const piece of process.stdout) {
      output += decoder.decode(piece);
      during?.(process);
      during = undefined;
    }
  })();
  const errors = await new Response(process.stderr).text();
  const { code } = await process.status;
  await reading;
  clearTimeout(timer);
  return { code, output, errors };
}

Deno.test("top says what is wrong with a file that it cannot show", async () => {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, "no segment at all".repeat(100));
  const [missing, wrong] = await Promise.all([run([`${path}.not`]), run([path])]);
  await Deno.remove(path);
  assertEquals([missing.code, wrong.code], [2, 2]);
  assertStringIncludes(missing.errors, `There is no file ${path}.not`);
  assertStringIncludes(wrong.errors, `Cannot show ${path}: it is no segment`);
});

const ignore = Deno.build.os !== "linux";
Deno.test(
  "top shows a file in use, and stores nothing [meter.outside]",
  { ignore },
  async () => {
    const path = `/dev/shm/millrace-top-${crypto.randomUUID()}`;
    const file = SegmentFile.create(path, portGeometry(), { endpoint: 0 });
    const port = file.port<string>();
    const metered = meter(port);
    try {
      port.write("hello");
      const before = await Deno.readFile(path);
      const { code, output } = await run([path, "--once", "--json", "--interval", "20"]);
      assertEquals(code, 0);
      const { channels, endpoints, seconds }: Figures = JSON.parse(output);
      assertEquals(endpoints.map(({ state }) => state), ["attached", "vacant"]);
      const { used, messages, oldest_us } = channels[0]!.ring!;
      assertEquals([used, messages], [32, 1]);
      assert(oldest_us! > 0 && seconds! > 0);
      assertEquals(await Deno.readFile(path), before);
      const { code: ended, output: shown } = await run(
        [path, "--interval", "20"],
        (process) => process.kill("SIGINT"),
      );
      assertEquals(ended, 0);
      assertStringIncludes(shown, "a port");
    } finally {
      metered.close();
      file.close();
      await Deno.remove(path);
    }
  },
);
