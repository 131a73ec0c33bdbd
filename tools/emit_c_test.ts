import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { emitReasonTexts, fillHeader } from "./emit_c.ts";
import { emitZig } from "./emit_zig.ts";
import type { Layout } from "./layout.ts";

/** What a header can name. */
const LAYOUT: Layout = {
  about: "An example.",
  version: { major: 1, minor: 2 },
  structures: [],
  enums: [{
    name: "codec",
    chapter: "codec",
    about: "Codecs.",
    values: [{ name: "bytes", value: 0, about: "As is." }, {
      name: "text",
      value: 1,
      about: `Long ${"words ".repeat(16)}end.`,
    }],
  }],
  flags: [{
    name: "frame_flag",
    chapter: "frame",
    about: "Bits.",
    values: [{ name: "last", value: 2, about: "The last." }],
  }],
  limits: [{
    name: "fanout_lose",
    chapter: "fanout",
    value: 1,
    unit: "mask",
    about: "A mode.",
  }],
  reasons: [{ name: "ring.cursor", value: 16, chapter: "ring", about: 'Out "of" bounds.' }],
};
const CLOSE = "/* /generated */";

const fill = (what: string) => fillHeader(`a\n/* generated: ${what} */\nold\n${CLOSE}\nb`, LAYOUT);

Deno.test("fillHeader: fills a region with an enumeration and leaves the rest alone", () => {
  assertEquals(fill("enum codec").split("\n"), [
    "a",
    "/* generated: enum codec */",
    "enum {",
    "  /* As is. */",
    "  MILLRACE_CODEC_BYTES = 0,",
    `  /* Long ${"words ".repeat(14).trim()}`,
    "     words words end. */",
    "  MILLRACE_CODEC_TEXT = 1",
    "};",
    CLOSE,
    "b",
  ]);
});

Deno.test("fillHeader: knows reasons, flags, limits and the version of the layout", () => {
  assertStringIncludes(fill("reasons all"), "  MILLRACE_REASON_RING_CURSOR = 16\n};");
  assertStringIncludes(fill("flags frame_flag"), "  MILLRACE_FRAME_FLAG_LAST = 2\n};");
  assertStringIncludes(fill("limit fanout_lose"), "  MILLRACE_FANOUT_LOSE = 1\n};");
  assertStringIncludes(fill("version layout"), "  MILLRACE_VERSION = 65538\n};");
});

Deno.test("fillHeader: refuses regions that it cannot fill, by line", () => {
  const open = "/* generated: reasons all */";
  const cases: [string, string][] = [
    [`${open}\n`, "millrace.h:1: the region is never closed"],
    [`\n${CLOSE}`, "millrace.h:2: no region is open"],
    [`${open}\n${open}\n${CLOSE}`, "millrace.h:2: the region of line 1 is still open"],
    [`/* generated: enum nothing */\n${CLOSE}`, "millrace.h:1: layout.json has no enum nothing"],
    [`/* generated: limits ring */\n${CLOSE}`, "layout.json has no limits ring"],
    [`  ${open}\n${CLOSE}`, "millrace.h:1: a marker must be a line of its own"],
  ];
  for (const [text, message] of cases) {
    assertThrows(() => fillHeader(text, LAYOUT), Error, message);
  }
});

Deno.test("emitZig: gives every reason a name", () => {
  const text = emitZig(LAYOUT);
  assertStringIncludes(text, '.ring_cursor => "ring.cursor",\n            _ => "unknown",');
});

Deno.test("emitReasonTexts: gives every reason a text, quotes included", () => {
  const text = emitReasonTexts(LAYOUT);
  assertStringIncludes(text, '        _ => "This version knows no such reason.",');
  assertStringIncludes(text, '        .ring_cursor => "Out \\"of\\" bounds.",');
});
