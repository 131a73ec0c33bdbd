/**
 * Prints the memories of the static cases as `impl-zig/src/testing/fuzz_corpus.txt`: where the fuzz
 * targets of the Zig implementation begin.
 *
 * @module
 */
import { fromHex, toImage } from "../conformance/reference/bytes.ts";
import type { Operation } from "../conformance/reference/case.ts";
import { baseOf, loadCases, loadNoun, NOUNS, resolve } from "../conformance/static/load.ts";

/** What of a case decides what an endpoint finds. */
interface Start {
  role: string;
  endpoint: number;
  channel: number;
  limit: number;
  calls: number;
  memory: Uint8Array;
}

const HEADING = [
  "# Generated from conformance/cases/ by tools/generate.ts; do not edit.",
  "#",
  "# A line for each memory: the case, its role, endpoint, channel (-1: none was named), limit, 1",
  "# where calls are offered, and size; then what in it is not 0, as offset:hexadecimal. A memory",
  "# that differs little from the one of an earlier line names that line's case as =case before",
  "# its differences.",
];

/** The whole file. A case that finds what one before it found is left out. */
export function emitFuzzCorpus(): string {
  const cases = loadCases();
  const lines: string[] = [];
  const seen = new Set<string>();
  /** The first line with a memory, by its size and what is in it. */
  const ids = new Map<string, string>();
  const add = (id: string, start: Start, base: Uint8Array) => {
    const { role, endpoint, channel, limit, calls } = start;
    const words = [role, endpoint, channel, limit, calls].join(" ");
    const text = toText(start.memory);
    if (seen.has(`${words} ${text}`)) return;
    seen.add(`${words} ${text}`);
    const known = base.length === start.memory.length ? ids.get(toText(base)) : undefined;
    const changed = `${base.length} =${known} ${differences(base, start.memory)}`;
    lines.push(`${id} ${words} ${known === undefined ? text : changed}`.trimEnd());
    if (!ids.has(text)) ids.set(text, id);
  };
  for (const entry of NOUNS.toSorted().flatMap(loadNoun)) {
    const { id } = entry;
    const { setting, memory } = resolve(entry, cases);
    // No fuzz target opens a property or a fanout.
    if (/^(property|fanout)/.test(setting.role)) continue;
    const { role, endpoint = role === "reader" ? 1 : 0, channel = -1 } = setting;
    const { limit = 4096, calls = setting.kind === "call", operations = [] } = setting;
    const start = { role, endpoint, channel, limit, calls: Number(calls), memory };
    add(id, start, resolve(baseOf(entry, cases), cases).memory);
    // What the peer stores while the case goes on.
    const later = withStores(memory, operations);
    if (later !== undefined) add(`${id}+set`, { ...start, memory: later }, memory);
  }
  return [...HEADING, ...lines, ""].join("\n");
}

function withStores(memory: Uint8Array, operations: Operation[]): Uint8Array | undefined {
  const runs = operations.flatMap((operation) => "set" in operation ? operation.set : []);
  if (runs.length === 0) return undefined;
  const later = memory.slice();
  for (const { offset, hex } of runs) later.set(fromHex(hex), offset);
  return later;
}

function toText(memory: Uint8Array): string {
  const { size, bytes } = toImage(memory);
  return [size, ...bytes.map(({ offset, hex }) => `${offset}:${hex.replaceAll(" ", "")}`)].join(
    " ",
  );
}

/** The words in which two memories of one size differ. */
function differences(from: Uint8Array, to: Uint8Array): string {
  const runs: string[] = [];
  for (let offset = 0; offset < to.length; offset += 4) {
    const word = to.subarray(offset, offset + 4);
    if (word.every((byte, index) => byte === from[offset + index])) continue;
    runs.push(`${offset}:${word.toHex()}`);
  }
  return runs.join(" ");
}
