// The scenarios, the command line, and that bench/README.md says of them, of peers and of options
// what there is.
import { assert, assertEquals, assertThrows } from "@std/assert";
import type { Scenario } from "../contract.ts";
import { Meter } from "../script/meter.ts";
import { makeMove, makeRecord, number, numberOf, readStamp, stamp } from "../script/payload.ts";
import { valuesOf } from "../script/payload.ts";
import { PEER_NAMES } from "../script/peers.ts";
import { fits, isNamed, readArguments, USAGE, UsageError } from "./arguments.ts";
import { loadGoals } from "./goals.ts";
import { EFFORTS, loadTasks, partsOf, quickTasks, readCase } from "./scenarios.ts";

Deno.test("all scenarios load, and no two have one name", async () => {
  const ids = (await loadTasks(EFFORTS.full)).flatMap(partsOf).map(({ id }) => id);
  assertEquals(ids.length, new Set(ids).size);
  assertEquals(ids.includes("cold/json-118/workers/own/free/fresh/11-100"), true);
  assertEquals(ids.includes("echo/json-118/workers/park/one-core"), true);
  assertEquals(ids.includes("load/json-118/workers/spin/free/100000"), true);
});

Deno.test("readCase reads the settings of a case, and refuses all others", () => {
  const read = readCase("bytes-8,json-118 async park/one-core fresh window=8 peers=@a,c", {
    "@a": "a,b",
  });
  assertEquals(
    read,
    {
      payload: ["bytes-8", "json-118"],
      ends: ["async"],
      wait: "park",
      pin: "one-core",
      fresh: true,
      window: 8,
      peers: ["a", "b", "c"],
    } as typeof read,
  );
  for (const setting of ["speed=1", "window", "window=0", "window=many", "rate=1,-1", "floor="]) {
    assertThrows(() => readCase(`bytes-8 async spin ${setting}`, {}), Error, setting);
  }
});

Deno.test("a quick run is a small part, and a smoke run has every scenario", async () => {
  const [full, quick, smoke] = await Promise.all(
    [EFFORTS.full, EFFORTS.quick, EFFORTS.smoke].map(loadTasks),
  );
  const idsOf = (tasks: typeof full) => tasks!.map(({ id }) => id);
  assertEquals(idsOf(quick), idsOf(full));
  const some = quickTasks(quick!);
  // Programs in Zig and Rust would have to be built first.
  assert(some.every(({ places }) => !places.includes("native")));
  const cells = some.reduce((count, { places }) => count + places.length, 0);
  assert(cells > 10 && cells < 20, `${cells} cells, of some 5 s each`);
  const names = (tasks: typeof full) => new Set(tasks!.map(({ scenario }) => scenario.name));
  assertEquals(names(smoke), names(full));
});

Deno.test("the object of a size has that size, whatever number is in it", () => {
  for (const size of [118, 500]) {
    const move = makeMove(size);
    for (const value of [0, 9, 255, 256]) {
      assertEquals(JSON.stringify(number(move, value)).length, size);
      assertEquals(numberOf(JSON.parse(JSON.stringify(move))), value & 255);
    }
  }
  assertThrows(() => makeMove(100), RangeError);
  assertEquals(JSON.stringify(makeRecord(500)).length, 500);
  assertThrows(() => makeRecord(20), RangeError);
  assertThrows(() => numberOf({ id: 1 }));
});

Deno.test("the values of each payload have its size, and bring their number back", () => {
  for (const payload of ["bytes-64", "json-118", "data-500", "text-500"]) {
    const [kind, size] = payload.split("-") as [string, string];
    const format = (kind === "data" ? "json" : kind) as Scenario["format"];
    const values = valuesOf({ payload, format, size: Number(size) } as Scenario);
    for (const number of [0, 7, 255, 256]) {
      const value = values.with(number);
      const text = format === "json" ? JSON.stringify(value) : value as string | Uint8Array;
      assertEquals([payload, text.length], [payload, Number(size)]);
      assertEquals(values.numberOf(value), number & 255);
    }
  }
});

Deno.test("readStamp sees a message that is put together from two", () => {
  const bytes = new Uint8Array(300);
  stamp(bytes, 16, 200, 7);
  assertEquals(readStamp(bytes, 16, 200), 7);
  bytes[16 + 128] = 8;
  assertThrows(() => readStamp(bytes, 16, 200), Error, "parts of another");
});

Deno.test("a smoke run has the parts that begin soon", async () => {
  const find = (tasks: Awaited<ReturnType<typeof loadTasks>>) =>
    tasks.find(({ id }) => id === "cold/json-118/workers/own/free/fresh")!;
  const [full, smoke] = await Promise.all([EFFORTS.full, EFFORTS.smoke].map(loadTasks));
  assertEquals(find(smoke!).scenario.parts, ["1", "2-10"]);
  const start = full!.find(({ scenario }) => scenario.name === "start")!;
  assertEquals(start.repetitions, EFFORTS.full.fresh_repetitions);
  assertEquals(partsOf(find(smoke!)).map(({ part }) => part?.name), ["1", "2-10"]);
});

Deno.test("Meter measures as many turns as it was told, after the warm-up", () => {
  const scenario = {
    name: "echo",
    payload: "bytes-8",
    size: 8,
    format: "bytes",
    ends: "workers",
    wait: "spin",
    pin: "free",
    duration_ms: 1,
    warmup_ms: 2,
    count: 1000,
  } as const;
  let started = 0;
  const meter = new Meter(scenario, () => started++);
  let turns = 0;
  while (meter.turn()) turns++;
  assertEquals(started, 1);
  assertEquals(meter.count >= 1000 && turns >= meter.count, true);
  const { counts } = meter.histogram();
  assertEquals(counts.reduce((sum, count) => sum + count, 0) * meter.turns, meter.count);
});

Deno.test("readArguments knows its options, and refuses all others", () => {
  const { effort, names, only, peers, places, json } = readArguments(
    ["--quick", "cold", "--only", "echo/*", "--peer=a,b", "--place", "deno,node", "--json=x.json"],
  );
  assertEquals([effort, names, only, peers, places, json], [
    "quick",
    ["cold"],
    ["echo/*"],
    ["a", "b"],
    ["deno", "node"],
    "x.json",
  ]);
  for (const words of [["--fast"], ["--only"], ["--place", "moon"]]) {
    assertThrows(() => readArguments(words), UsageError);
  }
});

Deno.test("fits takes a star for anything, and all else as it is", () => {
  assertEquals(fits("echo/bytes-64/workers", "echo/*"), true);
  assertEquals(fits("echo/bytes-64/workers", "*/workers"), true);
  assertEquals(fits("echo/bytes-64/workers", "echo"), false);
  assertEquals(fits("echo", "e.ho"), false);
  assertEquals(isNamed("echo/bytes-64/workers", "bytes-64"), true);
  assertEquals(isNamed("echo/bytes-64/workers", "bytes"), false);
});

const PAGE = await Deno.readTextFile(new URL("../README.md", import.meta.url));

/** What stands as code in the first cells of the rows under a heading. */
function rowsUnder(heading: string): string[] {
  const section = PAGE.slice(PAGE.indexOf(`\n## ${heading}\n`) + 1).split("\n## ")[0]!;
  return section.split("\n").flatMap((line) =>
    [...(/^\|([^|]*)\|/.exec(line)?.[1] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1]!)
  );
}

Deno.test("bench/README.md has a row of each scenario, and of no other", async () => {
  const names = new Set((await loadTasks(EFFORTS.full)).map(({ scenario }) => scenario.name));
  assertEquals(rowsUnder("The scenarios").sort(), [...names].sort());
});

Deno.test("bench/README.md has a row of each peer that is named anywhere", async () => {
  const tasks = await loadTasks(EFFORTS.full);
  const named = new Set([
    ...PEER_NAMES,
    ...tasks.flatMap(({ peers = [], floor = [], rival = [] }) => [peers, floor, rival].flat()),
    ...(await loadGoals()).flatMap(({ peer, versus = [], bound = [] }) =>
      [peer, versus, bound].flat()
    ),
  ]);
  const rows = rowsUnder("The peers");
  assertEquals([...named].filter((name) => !rows.includes(name)), []);
  assertEquals(rows.length, new Set(rows).size);
});

Deno.test("bench/README.md names options that there are", () => {
  const options = new Set(PAGE.match(/(?<=[`\s])--[a-z][a-z-]*/g));
  options.delete("--help");
  assertEquals([...options].filter((option) => !USAGE.includes(`  ${option} `)), []);
});
