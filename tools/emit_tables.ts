/**
 * Fills the tables of the chapters from a layout.
 *
 * A chapter holds `<!-- generated: structure frame_header -->` and `<!-- /generated -->`, each on a
 * line of its own; what stands between the two is replaced.
 *
 * @module
 */
import type { Group, Layout, Limit, Reason, Structure } from "./layout.ts";

const OPEN = /^<!-- generated: (\w+) (\w+) -->$/;
const CLOSE = "<!-- /generated -->";

/**
 * Returns the text with every region filled.
 *
 * @throws {Error} naming the line of a bad region
 */
export function fillTables(text: string, layout: Layout, path: string): string {
  const output: string[] = [];
  let open = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const fail = (fact: string) => new Error(`Cannot fill ${path}:${index + 1}: ${fact}`);
    const match = OPEN.exec(line);
    if (match) {
      if (open !== 0) throw fail(`the region of line ${open} is still open`);
      const [, kind = "", name = ""] = match;
      const table = makeTable(layout, kind, name);
      if (table === undefined) throw fail(`layout.json has no ${kind} ${name}`);
      output.push(line, ...table);
      open = index + 1;
    } else if (line === CLOSE) {
      if (open === 0) throw fail("no region is open");
      output.push(line);
      open = 0;
    } else if (/<!--\s*\/?generated/.test(line)) {
      throw fail("a marker must be a line of its own, <!-- generated: KIND NAME -->");
    } else if (open === 0) {
      output.push(line);
    }
  }
  if (open !== 0) throw new Error(`Cannot fill ${path}:${open}: the region is never closed`);
  return output.join("\n");
}

/** The lines of one table, or `undefined` where the layout has nothing of that kind and name. */
function makeTable(layout: Layout, kind: string, name: string): string[] | undefined {
  const named = <T extends { name: string }>(items: T[]) =>
    items.find((item) => item.name === name);
  if (kind === "structure") return map(named(layout.structures), structureTable);
  if (kind === "enum") return map(named(layout.enums), (group) => groupTable(group, "value"));
  if (kind === "flags") return map(named(layout.flags), (group) => groupTable(group, "bit"));
  if (kind === "limits") {
    return some(layout.limits.filter((limit) => limit.chapter === name), limitTable);
  }
  if (kind === "reasons" && name === "all") return some(layout.reasons, reasonTable);
  return undefined;
}

function structureTable({ name, size, align, fields }: Structure): string[] {
  return [
    `\`${name}\`: ${size} bytes, aligned to ${align}.`,
    "",
    ...table(
      ["offset", "field", "type", "meaning"],
      fields.map((field) => [
        String(field.offset),
        `\`${field.name}\``,
        field.atomic ? `${field.type}, atomic` : field.type,
        field.about,
      ]),
    ),
  ];
}

function groupTable(group: Group, first: string): string[] {
  const heading = [first, `\`${group.name}\``, "meaning"];
  return table(heading, group.values.map((v) => [String(v.value), `\`${v.name}\``, v.about]));
}

function limitTable(limits: Limit[]): string[] {
  const rows = limits.map((limit) => {
    const value = limit.value.toLocaleString("en-US");
    return [`\`${limit.name}\``, value, limit.unit, limit.about];
  });
  return table(["limit", "value", "unit", "meaning"], rows);
}

function reasonTable(reasons: Reason[]): string[] {
  const rows = reasons.map((r) => [String(r.value), `\`${r.name}\``, r.chapter, r.about]);
  return table(["value", "code", "chapter", "meaning"], rows);
}

/** The lines of a table. */
export function table(heading: string[], rows: string[][]): string[] {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heading), line(heading.map(() => "---")), ...rows.map(line)];
}

function map<T>(item: T | undefined, make: (item: T) => string[]): string[] | undefined {
  return item === undefined ? undefined : make(item);
}

function some<T>(items: T[], make: (items: T[]) => string[]): string[] | undefined {
  return items.length === 0 ? undefined : make(items);
}
