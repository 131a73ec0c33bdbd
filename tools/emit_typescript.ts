/**
 * Prints a layout as `impl-ts/src/memory/layout.ts`, and its reasons for `impl-zig/wasm.ts`.
 *
 * @module
 */
import type { Layout } from "./layout.ts";
import { constantGroups } from "./layout_constants.ts";
import { numeral, wrap } from "./emit_text.ts";

/** The whole file, formatted as `deno fmt` would. */
export function emitTypeScript(layout: Layout): string {
  return [
    "// Generated from spec/layout.json by tools/generate.ts; do not edit.",
    "",
    ...doc(`${layout.about} Offsets and sizes are in bytes.\n\n@module`),
    "",
    ...doc(
      "The numbers of the layout. An `enum`, because bundlers put its members where their names " +
        "stand, in other modules too, which they do not do with constants.",
    ),
    "export const enum layout {",
    ...constantGroups(layout).flatMap(({ heading, constants }, index) => [
      ...(index === 0 ? [] : [""]),
      ...wrap(heading, 95).map((line) => `  // ${line}`),
      "",
      ...constants.flatMap(({ name, value, about }) => [
        ...doc(about, 95).map((line) => `  ${line}`),
        `  ${name.toUpperCase()} = ${numeral(value)},`,
      ]),
    ]),
    "}",
    ...reasons(layout),
    "",
  ].join("\n");
}

/** The names alone, for the host of a module that answers with the numbers. */
export function emitReasonNames(layout: Layout): string {
  return [
    "// Generated from spec/layout.json by tools/generate.ts; do not edit.",
    "",
    ...doc("What the statuses of `millrace.wasm` below 0 mean.\n\n@module"),
    "",
    ...doc("The name of every reason code, by its number."),
    "export const REASON_NAMES: Readonly<Record<number, string>> = Object.freeze({",
    ...layout.reasons.map((reason) => `  ${reason.value}: "${reason.name}",`),
    "});",
    "",
  ].join("\n");
}

function reasons(layout: Layout): string[] {
  const names = layout.reasons.map((reason) => `"${reason.name}"`);
  if (names.length === 0) return [];
  const lines = wrap(rows(layout).join(" "), 92);
  return [
    "",
    ...doc("The name of a reason code: what is wrong, in one word."),
    "export type ReasonCode =",
    ...names.map((name, index) => `  | ${name}${index === names.length - 1 ? ";" : ""}`),
    "",
    ...doc(
      "The reason codes: the number of the first, what stands before the point, and what stands " +
        "after the point of that one and of all that follow it without a gap.",
    ),
    "const REASONS: string =",
    ...lines.map((line, index) => index < lines.length - 1 ? `  "${line} " +` : `  "${line}";`),
    "",
    ...doc("Every reason code, at the index by which it stands in shared memory."),
    "function reasons(): ReasonCode[] {",
    "  const names: string[] = [];",
    '  let group = "";',
    '  for (const word of REASONS.split(" ")) {',
    "    if (+word) {",
    "      names.length = +word;",
    '      group = "";',
    "    } else if (group) names.push(`${group}.${word}`);",
    "    else group = word;",
    "  }",
    "  return names as ReasonCode[];",
    "}",
    "",
    ...doc("Returns the name of a reason code, or `undefined` where this version knows none."),
    "export function reasonName(value: number): ReasonCode | undefined {",
    "  return reasons()[value];",
    "}",
    "",
    ...doc("Returns the number of a reason code, or `undefined` where the name is none."),
    "export function reasonValue(name: string): number | undefined {",
    "  const value = (reasons() as string[]).indexOf(name);",
    "  return value < 0 ? undefined : value;",
    "}",
  ];
}

/** The reasons by what stands before their point. */
function rows(layout: Layout): string[] {
  const found: string[] = [];
  let [last, next] = ["", NaN];
  for (const { name, value } of layout.reasons) {
    const [group = "", word = ""] = name.split(".");
    if (group === last && value === next) found.push(`${found.pop()} ${word}`);
    else found.push(`${value} ${group} ${word}`);
    [last, next] = [group, value + 1];
  }
  return found;
}

/** A doc comment: on one line where it fits. */
function doc(text: string, width = 97): string[] {
  const line = `/** ${text} */`;
  if (line.length <= width + 3 && !text.includes("\n")) return [line];
  return ["/**", ...wrap(text, width).map((part) => ` * ${part}`.trimEnd()), " */"];
}
