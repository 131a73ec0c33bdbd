/**
 * Fills `impl-zig/include/millrace.h` from a layout, and prints what the library says of reasons.
 *
 * The header holds comments that say `generated: enum codec` and `/generated`, each on a line of
 * its own; what stands between the two is replaced.
 *
 * @module
 */
import type { Layout } from "./layout.ts";
import { wrap } from "./emit_text.ts";

const OPEN = /^\/\* generated: (\w+) (\w+) \*\/$/;
const CLOSE = "/* /generated */";

/** One enumerator, and what stands before it. */
interface Enumerator {
  name: string;
  value: number;
  about: string;
}

/** Returns the header with every region filled. @throws {Error} naming the line of a bad region */
export function fillHeader(text: string, layout: Layout): string {
  const output: string[] = [];
  let open = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const fail = (fact: string) => new Error(`Cannot fill millrace.h:${index + 1}: ${fact}`);
    const match = OPEN.exec(line);
    if (match) {
      if (open !== 0) throw fail(`the region of line ${open} is still open`);
      const [, kind = "", name = ""] = match;
      const found = enumerators(layout, kind, name);
      if (found === undefined) throw fail(`layout.json has no ${kind} ${name}`);
      output.push(line, ...enumeration(found));
      open = index + 1;
    } else if (line === CLOSE) {
      if (open === 0) throw fail("no region is open");
      output.push(line);
      open = 0;
    } else if (/\/\*\s*\/?generated\b/.test(line)) {
      throw fail("a marker must be a line of its own, /* generated: KIND NAME */");
    } else if (open === 0) {
      output.push(line);
    }
  }
  if (open !== 0) throw new Error(`Cannot fill millrace.h:${open}: the region is never closed`);
  return output.join("\n");
}

function enumerators(layout: Layout, kind: string, name: string): Enumerator[] | undefined {
  if (kind === "reasons" && name === "all") {
    return layout.reasons.map((reason) => ({
      name: `MILLRACE_REASON_${reason.name.replace(".", "_").toUpperCase()}`,
      value: reason.value,
      about: reason.about,
    }));
  }
  if (kind === "version" && name === "layout") {
    const { major, minor } = layout.version;
    const about = "Major * 65,536 + minor; `millrace_version` must have the same major.";
    return [{ name: "MILLRACE_VERSION", value: major * 65_536 + minor, about }];
  }
  if (kind === "limit") {
    const limit = layout.limits.find((limit) => limit.name === name);
    return limit && [{ ...limit, name: `MILLRACE_${name}`.toUpperCase() }];
  }
  const groups = kind === "enum" ? layout.enums : kind === "flags" ? layout.flags : [];
  return groups.find((group) => group.name === name)?.values.map((item) => ({
    name: `MILLRACE_${name}_${item.name}`.toUpperCase(),
    value: item.value,
    about: item.about,
  }));
}

/** Without a comma after the last, which not every C++ allows. */
function enumeration(items: Enumerator[]): string[] {
  return [
    "enum {",
    ...items.flatMap(({ name, value, about }, index) => [
      ...comment(about).map((line) => `  ${line}`),
      `  ${name} = ${value}${index + 1 < items.length ? "," : ""}`,
    ]),
    "};",
  ];
}

function comment(about: string): string[] {
  const [first = "", ...rest] = wrap(about, 90);
  const lines = [`/* ${first}`, ...rest.map((line) => `   ${line}`)];
  return lines.map((line, index) => index === rest.length ? `${line} */` : line);
}

/** Prints `impl-zig/src/c/reasons.zig`, formatted as `zig fmt` would. */
export function emitReasonTexts({ reasons }: Layout): string {
  return [
    "//! Generated from spec/layout.json by tools/generate.ts; do not edit.",
    "//!",
    "//! What callers from C are told of reasons, in text that ends with a zero.",
    "",
    'const layout = @import("../memory/layout.zig");',
    "",
    "/// What the reason means.",
    "pub fn text(reason: layout.Reason) [*:0]const u8 {",
    "    return switch (reason) {",
    ...reasons.map(({ name, about }) =>
      `        .${name.replace(".", "_")} => ${JSON.stringify(about)},`
    ),
    '        _ => "This version knows no such reason.",',
    "    };",
    "}",
    "",
  ].join("\n");
}
