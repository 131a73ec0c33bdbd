import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { DIGEST_CORE, originsOf } from "./emit_digest_core.ts";
import { fillTables } from "./emit_tables.ts";
import { emitTypeScript } from "./emit_typescript.ts";
import { emitZig } from "./emit_zig.ts";
import { findStale, generate, main } from "./generate.ts";
import { checkLayout, type Layout, LayoutError, readLayout } from "./layout.ts";

const ROOT = `${import.meta.dirname}/..`;
const SCHEMA = JSON.parse(Deno.readTextFileSync(`${ROOT}/spec/layout.schema.json`));

/** A small layout in which every kind of thing appears; each call returns a fresh one. */
function example(): Layout & { $schema: string } {
  return {
    $schema: "./layout.schema.json",
    about: "An example.",
    version: { major: 1, minor: 0 },
    structures: [{
      name: "frame_header",
      prefix: "frame",
      chapter: "frame",
      size: 16,
      align: 8,
      about: "Before a payload.",
      fields: [
        { name: "size", offset: 0, type: "u32", atomic: true, about: "Bytes." },
        { name: "kind", offset: 4, type: "u8", atomic: false, about: "A kind." },
        { name: "label", offset: 5, type: "u8[3]", atomic: false, about: "Any|all." },
        { name: "total", offset: 8, type: "u64", atomic: false, about: "All bytes." },
      ],
    }],
    enums: [{
      name: "frame_kind",
      chapter: "frame",
      type: "u8",
      about: "What a frame is.",
      values: [{ name: "return", value: 4, about: "A result." }],
    }],
    flags: [{
      name: "frame_flag",
      chapter: "frame",
      about: "Bits.",
      values: [
        { name: "first", value: 1, about: "The first." },
        { name: "top", value: 0x8000_0000, about: "The highest bit." },
      ],
    }],
    limits: [
      { name: "ring_min", chapter: "ring", value: 256, unit: "bytes", about: "Least." },
      { name: "ring_max", chapter: "ring", value: 1 << 30, unit: "bytes", about: "Most." },
    ],
    reasons: [{ name: "ring.cursor", value: 16, chapter: "ring", about: "Out of bounds." }],
  };
}

/** Asserts that the changed example is refused, for exactly these reasons. */
function assertRefused(change: (layout: Layout) => void, ...problems: string[]): void {
  const layout = example();
  change(layout);
  const error = assertThrows(() => checkLayout(layout, SCHEMA), LayoutError);
  assertEquals(error.problems, problems);
}

type Fields = Layout["structures"][0]["fields"];
const fieldsOf = (layout: Layout) => layout.structures[0]?.fields as Fields;

Deno.test("checkLayout: accepts the example, so that each refusal below has one cause", () => {
  assertEquals(checkLayout(example(), SCHEMA), example());
});

Deno.test("checkLayout: accepts an array of atomic words", () => {
  const layout = example();
  Object.assign(fieldsOf(layout)[3] as object, { type: "u32[2]", atomic: true });
  assertEquals(checkLayout(layout, SCHEMA), layout);
});

Deno.test("checkLayout: refuses what has the wrong shape", () => {
  const place = "/structures/0/fields/0";
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[0] as object, { ofset: 1 }),
    `${place}: must NOT have additional properties "ofset"`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[0] as object, { offset: -1 }),
    `${place}/offset: must be >= 0`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[0] as object, { type: "u24" }),
    `${place}/type: must match pattern "^(u8|u16|u32|u64|i32|(u8|u32)\\[[1-9][0-9]{0,8}\\])$"`,
  );
  assertRefused(
    (l) => Object.assign(l.limits[0] as object, { about: "No full stop" }),
    '/limits/0/about: must match pattern "^\\S[^\\n\\r]*\\.$"',
  );
  for (const name of ["ring", "Ring.cursor", "ring.cursor.x", "ring.Cursor", "ring."]) {
    const layout = example();
    Object.assign(layout.reasons[0] as object, { name });
    assertThrows(() => checkLayout(layout, SCHEMA), LayoutError, "/reasons/0/name");
  }
});

Deno.test("checkLayout: refuses fields that cannot stand where they are", () => {
  const place = "structures.frame_header";
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[1] as object, { offset: 3 }),
    `${place}.kind: offset 3 overlaps or precedes size, which ends at 4`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[3] as object, { offset: 16 }),
    `${place}.total: ends at 24, outside the 16 bytes`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[3] as object, { type: "u32", offset: 10 }),
    `${place}.total: offset 10 is not 4-aligned`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[3] as object, { atomic: true }),
    `${place}.total: only 32-bit words can be atomic, not u64`,
  );
  assertRefused(
    (l) => Object.assign(l.structures[0] as object, { align: 4 }),
    `${place}.total: u64 in a structure that is less aligned`,
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[3] as object, { type: "u32[2]", offset: 10 }),
    `${place}.total: ends at 18, outside the 16 bytes`,
    `${place}.total: offset 10 is not 4-aligned`,
  );
  assertRefused(
    (l) => Object.assign(l.structures[0] as object, { align: 24 }),
    `${place}: align 24 is not a power of two`,
    `${place}: size 16 is not a multiple of 24`,
  );
});

Deno.test("checkLayout: refuses names and values that appear twice", () => {
  assertRefused(
    (l) => l.reasons.push({ ...l.reasons[0] as Layout["reasons"][0], name: "ring.other" }),
    "reasons: value 16 appears twice",
  );
  assertRefused(
    (l) => Object.assign(fieldsOf(l)[1] as object, { name: "size" }),
    "structures.frame_header: field size appears twice",
    "generated constants: name frame_size_offset appears twice",
  );
  assertRefused(
    (l) => l.enums[0]?.values.push({ name: "throw", value: 4, about: "A failure." }),
    "enums.frame_kind: value 4 appears twice",
  );
  assertRefused(
    (l) => Object.assign(l.limits[0] as object, { name: "frame_header_size" }),
    "generated constants: name frame_header_size appears twice",
  );
});

Deno.test("checkLayout: refuses values out of their range", () => {
  assertRefused(
    (l) => Object.assign(l.flags[0]?.values[0] as object, { value: 3 }),
    "flags.frame_flag.first: 3 is not a single bit",
  );
  assertRefused(
    (l) => Object.assign(l.flags[0]?.values[0] as object, { value: 0 }),
    "flags.frame_flag.first: 0 is not a single bit",
  );
  assertRefused(
    (l) => Object.assign(l.enums[0]?.values[0] as object, { value: 256 }),
    "enums.frame_kind.return: 256 does not fit u8",
  );
  assertRefused(
    (l) => Object.assign(l.limits[0] as object, { value: (1 << 30) + 1 }),
    "limits.ring_min: 1073741825 is above ring_max, 1073741824",
  );
});

Deno.test("emitTypeScript: names constants by structure, prefix and group", () => {
  const text = emitTypeScript(example());
  for (
    const line of [
      "  FRAME_HEADER_SIZE = 16,",
      "  FRAME_SIZE_OFFSET = 0,",
      "  FRAME_SIZE_WORD = 0,",
      "  /** u8. A kind. */\n  FRAME_KIND_OFFSET = 4,",
      "  FRAME_LABEL_SIZE = 3,",
      "  FRAME_KIND_RETURN = 4,",
      "  FRAME_FLAG_TOP = 2_147_483_648,",
      "  FRAME_FLAG_ALL = 2_147_483_649,",
      "  RING_MAX = 1_073_741_824,",
      "  REASON_RING_CURSOR = 16,",
      'export type ReasonCode =\n  | "ring.cursor";',
    ]
  ) assertStringIncludes(text, line);
  assert(!text.includes("FRAME_KIND_WORD"), "only atomic words have an index");
});

Deno.test("emitTypeScript: what it prints is a module that holds the numbers", async () => {
  const layout = await readLayout(ROOT);
  const text = emitTypeScript(layout);
  const module = await import(`data:application/typescript,${encodeURIComponent(text)}`);
  assertEquals(module.layout.FRAME_HEADER_SIZE, 16);
  for (const { name, value } of layout.reasons) {
    assertEquals([module.reasonName(value), module.reasonValue(name)], [name, value]);
  }
  assertEquals(module.reasonValue("ring.other"), undefined);
  assertEquals(module.reasonName(0), undefined);
});

Deno.test("emitZig: quotes keywords, and leaves enums open", () => {
  const text = emitZig(example());
  for (
    const line of [
      "pub const frame_header_size = 16;",
      "pub const frame_size_word = 0;",
      "pub const frame_kind_return = 4;",
      'pub const FrameKind = enum(u8) {\n    /// A result.\n    @"return" = 4,\n    _,\n};',
      "pub const Reason = enum(u32) {",
      '            .ring_cursor => "ring.cursor",',
    ]
  ) assertStringIncludes(text, line);
});

Deno.test("fillTables: replaces what stands in a region, and nothing else", () => {
  const before = "# A\n<!-- generated: flags frame_flag -->\nold\n<!-- /generated -->\nend\n";
  const after = fillTables(before, example(), "a.md");
  assertEquals(
    after,
    "# A\n<!-- generated: flags frame_flag -->\n| bit | `frame_flag` | meaning |\n" +
      "| --- | --- | --- |\n| 1 | `first` | The first. |\n" +
      "| 2147483648 | `top` | The highest bit. |\n<!-- /generated -->\nend\n",
  );
  assertEquals(fillTables(after, example(), "a.md"), after);
});

Deno.test("fillTables: knows every kind of table", () => {
  const fill = (name: string) =>
    fillTables(`<!-- generated: ${name} -->\n<!-- /generated -->`, example(), "a.md");
  assertStringIncludes(fill("structure frame_header"), "`frame_header`: 16 bytes, aligned to 8.");
  assertStringIncludes(fill("structure frame_header"), "| 0 | `size` | u32, atomic | Bytes. |");
  assertStringIncludes(fill("structure frame_header"), "| 5 | `label` | u8[3] | Any\\|all. |");
  assertStringIncludes(fill("enum frame_kind"), "| 4 | `return` | A result. |");
  assertStringIncludes(fill("limits ring"), "| `ring_max` | 1,073,741,824 | bytes | Most. |");
  assertStringIncludes(fill("reasons all"), "| 16 | `ring.cursor` | ring | Out of bounds. |");
});

Deno.test("fillTables: refuses regions that it cannot fill, by line", () => {
  const open = "<!-- generated: reasons all -->";
  const close = "<!-- /generated -->";
  const cases: [string, string][] = [
    [`${open}\n`, "a.md:1: the region is never closed"],
    [`\n${close}`, "a.md:2: no region is open"],
    [`${open}\n${open}\n${close}`, "a.md:2: the region of line 1 is still open"],
    [`<!-- generated: enum nothing -->\n${close}`, "a.md:1: layout.json has no enum nothing"],
    [`<!-- generated: table frame_kind -->\n${close}`, "layout.json has no table frame_kind"],
    [`<!-- generated: reasons wait -->\n${close}`, "layout.json has no reasons wait"],
    [`- ${open}\n${close}`, "a.md:1: a marker must be a line of its own"],
  ];
  for (const [text, message] of cases) {
    assertThrows(() => fillTables(text, example(), "a.md"), Error, message);
  }
});

Deno.test("generate: finds a stale and a missing file, and writes both", async () => {
  const root = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${root}/spec`);
    await Deno.writeTextFile(`${root}/spec/layout.schema.json`, JSON.stringify(SCHEMA));
    await Deno.writeTextFile(`${root}/spec/layout.json`, JSON.stringify(example()));
    const chapter = "<!-- generated: limits ring -->\n<!-- /generated -->\n";
    await Deno.writeTextFile(`${root}/spec/ring.md`, chapter);
    await Deno.mkdir(`${root}/impl-zig/include`, { recursive: true });
    const header = "/* generated: reasons all */\n/* /generated */\n";
    await Deno.writeTextFile(`${root}/impl-zig/include/millrace.h`, header);
    await Deno.writeTextFile(`${root}/impl-zig/include/millrace_fanout.h`, header);
    // It is compiled only where it is stale, which its own test shows.
    for (const path of [...await originsOf(ROOT), DIGEST_CORE]) {
      await Deno.mkdir(`${root}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true });
      await Deno.copyFile(`${ROOT}/${path}`, `${root}/${path}`);
    }
    const paths = [
      "impl-ts/src/memory/layout.ts",
      "impl-zig/src/memory/layout.zig",
      "impl-zig/wasm_reasons.ts",
      "impl-zig/src/c/reasons.zig",
      "impl-zig/src/testing/fuzz_corpus.txt",
      "impl-ts/src/digest/blocks.ts",
      "impl-zig/include/millrace.h",
      "impl-zig/include/millrace_fanout.h",
      "spec/ring.md",
    ];
    const stale = async () => (await findStale(root, await generate(root))).map((f) => f.path);
    assertEquals(await stale(), paths);
    assertEquals(await main(["--check"], root), 1);
    assertEquals(await main([], root), 0);
    assertEquals(await stale(), []);
    assertEquals(await main(["--check"], root), 0);
    // One byte is enough.
    await Deno.writeTextFile(`${root}/${paths[0]}`, " ", { append: true });
    assertEquals(await stale(), ["impl-ts/src/memory/layout.ts"]);
    assertEquals(await main(["--chekc"], root), 2);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
