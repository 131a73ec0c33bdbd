/** Prints a layout as `impl-zig/src/memory/layout.zig`. @module */
import type { Group, Layout, Reason } from "./layout.ts";
import { constantGroups } from "./layout_constants.ts";
import { numeral, wrap } from "./emit_text.ts";

// Names that would end the sentence: everything that std/zig/tokenizer.zig lists as a keyword.
const KEYWORDS = new Set(
  ("addrspace align allowzero and anyframe anytype asm break callconv catch comptime const " +
    "continue defer else enum errdefer error export extern fn for if inline linksection noalias " +
    "noinline nosuspend opaque or orelse packed pub resume return struct suspend switch test " +
    "threadlocal try union unreachable var volatile while").split(" "),
);

/** The whole file, formatted as `zig fmt` would. */
export function emitZig(layout: Layout): string {
  return [
    "//! Generated from spec/layout.json by tools/generate.ts; do not edit.",
    "//!",
    ...wrap(
      `${layout.about} Offsets and sizes are in bytes. The constants are comptime integers, so ` +
        "that they fit every integer type that can hold them.",
      96,
    ).map((line) => `//! ${line}`),
    ...constantGroups(layout).flatMap(({ heading, constants }) => [
      "",
      ...wrap(heading, 97).map((line) => `// ${line}`),
      "",
      ...constants.flatMap(({ name, value, about }) => [
        ...doc(about, ""),
        `pub const ${name} = ${numeral(value)};`,
      ]),
    ]),
    ...layout.enums.flatMap(enumeration),
    ...reasonEnumeration(layout.reasons),
    "",
  ].join("\n");
}

/** Not exhaustive: what another process stored may be any number, and must not be undefined. */
function enumeration(group: Group): string[] {
  return [
    "",
    ...doc(group.about, ""),
    `pub const ${pascalCase(group.name)} = enum(${group.type ?? "u32"}) {`,
    ...group.values.flatMap(({ name, value, about }) => [
      ...doc(about, "    "),
      `    ${identifier(name)} = ${numeral(value)},`,
    ]),
    "    _,",
    "};",
  ];
}

function reasonEnumeration(reasons: Reason[]): string[] {
  if (reasons.length === 0) return [];
  const tag = (reason: Reason) => identifier(reason.name.replace(".", "_"));
  return [
    "",
    ...doc("What is wrong, as it stands in shared memory.", ""),
    "pub const Reason = enum(u32) {",
    ...reasons.flatMap((reason) => [
      ...doc(reason.about, "    "),
      `    ${tag(reason)} = ${numeral(reason.value)},`,
    ]),
    "    _,",
    "",
    ...doc("The name of the reason, or `unknown` where this version knows none.", "    "),
    "    pub fn name(reason: Reason) [:0]const u8 {",
    "        return switch (reason) {",
    ...reasons.map((reason) => `            .${tag(reason)} => "${reason.name}",`),
    '            _ => "unknown",',
    "        };",
    "    }",
    "};",
  ];
}

function doc(text: string, indent: string): string[] {
  return wrap(text, 96 - indent.length).map((line) => `${indent}/// ${line}`);
}

function identifier(name: string): string {
  return KEYWORDS.has(name) ? `@"${name}"` : name;
}

function pascalCase(name: string): string {
  return name.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
}
