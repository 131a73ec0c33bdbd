/**
 * Writes the tables of calls and values into `bench/goals.md`, from the results of a run, of one
 * file or of one for each place: `deno run -A bench/runner/filled_tables.ts FILE...`.
 * What the run has not measured is shown as a dash, and so is what is not there.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import type { Results, Row } from "./results.ts";
import { readResults } from "./results_file.ts";
import type { PlaceName } from "./scenarios.ts";
import { digits } from "./table.ts";

/** The page that has the tables. */
export const PAGE = fileURLToPath(new URL("../goals.md", import.meta.url));
const CALLS = 20_000;
const DIRECTIONS = ["down", "up", "nested"] as const;
const VALUES = ["record", "records", "arrays", "rich"] as const;

/** Tables of calls: which ends, who, and where. */
const CALL_ENDS: readonly (readonly [string, string, readonly PlaceName[], readonly string[]])[] = [
  ["processes", "Two processes", ["native"], [
    "millrace-call-deno",
    "millrace-call-zig",
    "unix-socket-call",
    "fifo-call",
    "unix-socket",
    "fifo",
    "millrace-zig",
  ]],
  ["workers", "Two workers that block", ["deno", "node"], [
    "millrace-call",
    "comlink",
    "synckit",
    "millrace",
    "messageport",
    "floor-text",
  ]],
  ["main-worker", "The main thread by events, and a worker that blocks", ["deno", "node"], [
    "millrace-call",
    "comlink",
    "coincident",
    "millrace",
    "messageport",
    "floor-text",
  ]],
  ["async", "The main thread and a worker, both by events", ["deno", "node"], [
    "millrace-call",
    "comlink",
    "millrace",
    "messageport",
    "floor-text",
  ]],
];
const WAITS = ["spin/free", "park/one-core"] as const;
const VALUE_PEERS = {
  worker: ["json", "structured-clone", "msgpackr", "millrace-cbor"],
  workers: ["millrace", "messageport", "msgpackr", "millrace-cbor"],
} as const;

/** The tables of calls in Markdown: seconds for 20,000 calls. */
export function callTables({ rows }: Pick<Results, "rows">): string {
  const find = finder(rows);
  const seconds = (row: Row | undefined) =>
    row?.median === undefined ? "—" : digits(row.median * CALLS / 1e9);
  return CALL_ENDS.map(([ends, title, places, peers]) => {
    const head = [
      "peer",
      ...places.flatMap((place) =>
        WAITS.flatMap((wait) =>
          DIRECTIONS.map((direction) => `${place}, ${wait.split("/")[0]}, ${direction}`)
        )
      ),
    ];
    const lines = peers.map((
      peer,
    ) => [
      `\`${peer}\``,
      ...places.flatMap((place) =>
        WAITS.flatMap((wait) =>
          DIRECTIONS.map((direction) =>
            seconds(find(`calls/number-48/${ends}/${wait}/${direction}`, place, peer))
          )
        )
      ),
    ]);
    return `${title}:\n\n${markdown([head, ...lines])}`;
  }).join("\n\n");
}

/** The table of values in Markdown: microseconds. */
export function valueTables({ rows }: Pick<Results, "rows">): string {
  const find = finder(rows);
  const places = ["deno", "node"] as const;
  const micros = (row: Row | undefined) =>
    row?.median === undefined ? "—" : digits(row.median / 1e3);
  return Object.entries(VALUE_PEERS).map(([ends, peers]) => {
    const title = ends === "worker" ? "Written and read on one thread" : "There and back";
    const head = ["peer", ...places.flatMap((place) => VALUES.map((name) => `${place}, ${name}`))];
    const lines = peers.map((
      peer,
    ) => [
      `\`${peer}\``,
      ...places.flatMap((place) =>
        VALUES.map((name) => micros(find(`values/value-${name}/${ends}/spin/free`, place, peer)))
      ),
    ]);
    return `${title}:\n\n${markdown([head, ...lines])}`;
  }).join("\n\n");
}

/** A text with what stands between two marks replaced. */
export function fill(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- filled: ${name} -->`, `<!-- /filled: ${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`Cannot fill ${name}: it has no place`);
  return `${text.slice(0, from)}${begin}\n\n${content}\n\n${text.slice(to)}`;
}

function finder(rows: readonly Row[]) {
  return (scenario: string, place: PlaceName, peer: string): Row | undefined =>
    rows.find((row) => row.scenario === scenario && row.place === place && row.peer === peer);
}

function markdown([head, ...lines]: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [row(head!), row(head!.map(() => "---")), ...lines.map(row)].join("\n");
}

if (import.meta.main) {
  const files = await Promise.all(Deno.args.map(readResults));
  const results = { rows: files.flatMap(({ rows }) => rows) };
  const text = await Deno.readTextFile(PAGE);
  const calls = results.rows.some(({ scenario }) => scenario.startsWith("calls/"));
  const values = results.rows.some(({ scenario }) => scenario.startsWith("values/"));
  const filled = calls ? fill(text, "calls", callTables(results)) : text;
  await Deno.writeTextFile(PAGE, values ? fill(filled, "values", valueTables(results)) : filled);
}
