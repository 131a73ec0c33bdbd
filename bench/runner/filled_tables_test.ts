// The tables of goals.md: every figure is where its head says.

import { assert, assertEquals, assertThrows } from "@std/assert";
import { callTables, fill, PAGE, valueTables } from "./filled_tables.ts";
import type { Row } from "./results.ts";
import { EFFORTS, loadTasks } from "./scenarios.ts";

const rowOf = (scenario: string, place: Row["place"], peer: string, median: number): Row => {
  return { scenario, place, driver: place, peer, repetitions: [], median };
};

/** The cell of a table by its head and the peer of its line. */
function cellOf(text: string, title: string, peer: string, head: string): string | undefined {
  const table = text.slice(text.indexOf(`${title}:\n\n`)).split("\n").slice(2);
  const cells = (line: string) => line.split("|").map((cell) => cell.trim());
  const line = table.find((line) => line.startsWith(`| \`${peer}\` `))!;
  return cells(line)[cells(table[0]!).indexOf(head)];
}

Deno.test("callTables has seconds of 20,000 calls, and a dash where nothing was measured", () => {
  const text = callTables({
    rows: [rowOf("calls/number-48/workers/park/one-core/up", "node", "comlink", 50_000)],
  });
  assertEquals(cellOf(text, "Two workers that block", "comlink", "node, park, up"), "1.00");
  assertEquals(cellOf(text, "Two workers that block", "comlink", "deno, park, up"), "—");
  assertEquals(cellOf(text, "Two workers that block", "comlink", "node, spin, up"), "—");
  assertEquals(cellOf(text, "Two workers that block", "millrace", "node, park, up"), "—");
});

Deno.test("valueTables has microseconds", () => {
  const row = rowOf("values/value-rich/workers/spin/free", "deno", "msgpackr", 21_000);
  const text = valueTables({ rows: [row] });
  assertEquals(cellOf(text, "There and back", "msgpackr", "deno, rich"), "21.0");
  assertEquals(cellOf(text, "Written and read on one thread", "msgpackr", "deno, rich"), "—");
});

Deno.test("the tables of goals.md look for scenarios that there are", async () => {
  const rows = (await loadTasks(EFFORTS.full)).flatMap(({ id, places, peers = [] }) =>
    places.flatMap((place) => peers.map((peer) => rowOf(id, place, peer, 50_000)))
  );
  const missing = (text: string) => text.split("\n").filter((line) => line.includes("—"));
  assertEquals(missing(callTables({ rows })), []);
  assertEquals(missing(valueTables({ rows })), []);
  assert(rows.length > 0);
});

Deno.test("fill replaces what stands between its marks, and nothing else", async () => {
  const text = "a\n<!-- filled: x -->\nold\n<!-- /filled: x -->\nb\n";
  const filled = fill(text, "x", "new");
  assertEquals(filled, "a\n<!-- filled: x -->\n\nnew\n\n<!-- /filled: x -->\nb\n");
  assertEquals(fill(filled, "x", "new"), filled);
  assertThrows(() => fill(text, "y", "new"), Error, "it has no place");
  const page = await Deno.readTextFile(PAGE);
  for (const name of ["calls", "values"]) fill(page, name, "");
});
