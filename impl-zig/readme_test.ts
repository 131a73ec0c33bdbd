// The guide: every program in it is compiled and runs, and its table of errors is complete. Those
// of its beginning are run by `package_test.ts`.

import { assert, assertEquals, assertGreater } from "@std/assert";
import { Ajv2020 } from "ajv/2020";
import { type MeterSnapshot, snapshotSchema } from "../impl-ts/src/meter/meter.ts";
import { findProgram } from "../tools/programs.ts";
import { buildWasm } from "../tools/wasm_worker.ts";
import { block, BLOCKS, inFolder, README, ROOT, succeed } from "./readme_fixture.ts";

const MODULE = `${ROOT}impl-zig/src/root.zig`;

Deno.test("README: every block of code is marked, and so run by a test", () => {
  const blocks = [...README.matchAll(/^```(zig|c|ts)\n/gm)];
  assertEquals(BLOCKS.length, blocks.length);
  const known = [
    ...["file: build.zig", "worker", "program: threads", "program: processes"], // package_test.ts
    ...["test", "wasi", "c", "c batch", "ts batch", "c fanout", "c meter"],
    ...["page", "page worker"],
  ];
  assertEquals([...new Set(BLOCKS.map(({ mark }) => mark))].sort(), known.sort());
});

Deno.test("README: its tests pass", async () => {
  await inFolder(async (folder) => {
    const tests = BLOCKS.filter(({ mark }) => mark === "test").map(({ code }) => code);
    assertGreater(tests.length, 4);
    const imports = 'const std = @import("std");\nconst millrace = @import("millrace");\n\n';
    await Deno.writeTextFile(`${folder}/guide.zig`, imports + tests.join("\n"));
    const modules = ["--dep", "millrace", "-Mroot=guide.zig", `-Mmillrace=${MODULE}`];
    const output = await succeed(folder, "zig", "test", ...modules);
    assert(output.includes(`All ${tests.length} tests passed.`), output);
  });
});

Deno.test("README: a WASI command can choose its mechanism", async () => {
  await inFolder(async (folder) => {
    const check = "comptime {\n    if (millrace.Host.native.wakes != 4) unreachable;\n}\n";
    await Deno.writeTextFile(`${folder}/command.zig`, `${block("wasi")}\n${check}`);
    const modules = ["--dep", "millrace", "-Mroot=command.zig", `-Mmillrace=${MODULE}`];
    const target = ["-target", "wasm32-wasi", "-mcpu=generic+atomics+bulk_memory"];
    await succeed(folder, "zig", "build-obj", ...target, ...modules);
  });
});

Deno.test({
  name: "README: the program in C reads what another process writes",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      await Deno.writeTextFile(`${folder}/reader.c`, block("c"));
      await succeed(ROOT, "zig", "build", "lib");
      const strict = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-value", "-Werror"];
      // Somewhere else than where it was installed.
      await succeed(folder, "cp", "-R", `${ROOT}zig-out/include`, `${ROOT}zig-out/lib`, ".");
      const library = [...await flagsOf(folder), `-Wl,-rpath,${folder}/lib`];
      // What is undefined traps; to say what it was would take a library that is compiled for long.
      const checks = ["-O2", "-fsanitize=undefined", "-fsanitize-trap=undefined"];
      const command = [...strict, ...checks, "reader.c", ...library, "-o", "reader"];
      await succeed(folder, "zig", "cc", ...command);
      const reader = succeed(folder, "./reader", `${folder}/port`);
      await Deno.writeTextFile(`${folder}/writer.zig`, WRITER);
      const modules = ["--dep", "millrace", "-Mroot=writer.zig", `-Mmillrace=${MODULE}`];
      await succeed(folder, "zig", "run", ...modules, "--", `${folder}/port`);
      assertEquals(await reader, "7: from Zig\n");
      await Deno.writeTextFile(`${folder}/fanout.c`, block("c fanout"));
      await succeed(folder, "zig", "cc", ...strict, "fanout.c", ...library, "-o", "fanout");
      assertEquals(await succeed(folder, "./fanout"), "1: to all\n2: to all\n");
      await Deno.writeTextFile(`${folder}/meter.c`, block("c meter"));
      await succeed(folder, "zig", "cc", ...strict, "meter.c", ...library, "-o", "meter");
      const report = JSON.parse(await succeed(folder, "./meter")) as MeterSnapshot;
      const check = new Ajv2020().compile(snapshotSchema); // [meter.report]
      assert(check(report), JSON.stringify(check.errors));
      assertEquals([report.incoming?.messages, report.incoming?.waiting.count], [100, 100]);
    }),
});

/** What `pkg-config` says of the library in a folder, which is also what its file says. */
async function flagsOf(folder: string): Promise<string[]> {
  const described = `${folder}/lib/pkgconfig`;
  const text = await Deno.readTextFile(`${described}/millrace.pc`);
  const valueOf = (name: string): string =>
    name === "pcfiledir" ? described : valued(new RegExp(`^${name}(?:=|: )(.*)$`, "m"));
  const valued = (line: RegExp): string =>
    (line.exec(text)?.[1] ?? "").replace(/\$\{(\w+)\}/g, (_, name: string) => valueOf(name));
  const flags = [valueOf("Cflags"), ...valueOf("Libs").split(" ")];
  assertEquals(flags, [
    `-I${described}/../../include`,
    `-L${described}/../../lib`,
    "-lmillrace",
  ]);
  const program = await findProgram(["pkg-config", "pkgconf"]);
  if (program === undefined) return flags;
  const asked = ["env", `PKG_CONFIG_PATH=${described}`, program, "--cflags", "--libs", "millrace"];
  const found = (await succeed(folder, ...asked)).trim().split(/ +/);
  assertEquals(await Promise.all(found.map(realOf)), await Promise.all(flags.map(realOf)));
  return found;
}

/** A flag, with its folder without detours. */
async function realOf(flag: string): Promise<string> {
  const [, kind = "", path = ""] = /^(-[IL])(.*)$/.exec(flag) ?? [];
  return kind === "" ? flag : `${kind}${await Deno.realPath(path)}`;
}

const WRITER = `const std = @import("std");
const millrace = @import("millrace");

pub fn main(init: std.process.Init) !void {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    const rings: millrace.Rings = .{ .capacities = .{ 65_536, 65_536 } };
    const channels = rings.channels();
    const geometry: millrace.Geometry = .{ .endpoint_count = 2, .channels = &channels };
    var file: millrace.SegmentFile = undefined;
    var storage: [2]millrace.Channel = undefined;
    try file.create(arguments[1], geometry, 1, &storage, .{});
    defer file.close();
    var port: millrace.Port = undefined;
    try port.init(&file.segment, 1, .{});
    defer port.close();
    try port.write("from Zig", .{ .tag = 7 }, .ms(10_000));
    try port.end();
    _ = port.read(&.{}, .ms(10_000)) catch |err| if (err != error.PeerClosed) return err;
}
`;

Deno.test("README: the page and its worker exchange messages", async () => {
  await inFolder(async (folder) => {
    for (const name of ["wasm", "wasm_instance", "wasm_mailbox", "wasm_reasons"]) {
      await Deno.copyFile(`${ROOT}impl-zig/${name}.ts`, `${folder}/${name}.ts`);
    }
    await Deno.writeFile(`${folder}/millrace.wasm`, await buildWasm("wasm", "millrace"));
    await Deno.writeTextFile(`${folder}/page.ts`, block("page"));
    await Deno.writeTextFile(`${folder}/worker.ts`, block("page worker"));
    const output = await succeed(folder, Deno.execPath(), "run", "-A", "--no-config", "page.ts");
    assertEquals(output, '{ did: { cmd: "run" } }\n');
  });
});

Deno.test("README: the table of errors has all of them, with their codes", async () => {
  const read = (path: string) => Deno.readTextFile(`${ROOT}${path}`);
  const numbers = new Map(
    [...(await read("impl-zig/src/memory/layout.zig")).matchAll(
      /^pub const reason_(\w+) = (\d+);$/gm,
    )]
      .map(([, name = "", number]) => [name, number]),
  );
  const expected = [
    ...(await read("impl-zig/src/error.zig")).matchAll(/^ +(error.*?) => \.(\w+),/gm),
  ]
    .flatMap(([, errors = "", reason = ""]) =>
      errors.split(", ").map((error) =>
        `${error} ${reason.replace("_", ".")} ${numbers.get(reason)}`
      )
    )
    // `error.Corrupt` stands for these.
    .filter((row) => !/^error\.(Ring|Frame|Fanout)/.test(row));
  const found = [...README.matchAll(/^\| `(error\.\w+)` \| `([\w.]+)` \((\d+)\) \|/gm)]
    .map(([, error, code, number]) => `${error} ${code} ${number}`);
  assertEquals(found.sort(), expected.sort());
  assertGreater(found.length, 20);
});
