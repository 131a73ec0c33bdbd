// What bench/README.md says of scenarios, peers and options is what there is.

import { assertEquals } from "@std/assert";
import { PEER_NAMES } from "../script/peers.ts";
import { USAGE } from "./arguments.ts";
import { loadGoals } from "./goals.ts";
import { EFFORTS, loadTasks } from "./scenarios.ts";

const PAGE = await Deno.readTextFile(new URL("../README.md", import.meta.url));

/** What stands as code in the first cells of the rows under a heading. */
function rowsUnder(heading: string): string[] {
  const section = PAGE.slice(PAGE.indexOf(`\n## ${heading}\n`) + 1).split("\n## ")[0]!;
  return section.split("\n").flatMap((line) =>
    [...(/^\|([^|]*)\|/.exec(line)?.[1] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1]!)
  );
}

Deno.test("bench/README.md has a row of each scenario, and of no other", async () => {
  const names = new Set((await loadTasks(EFFORTS.full)).map(({ scenario }) => scenario.name));
  assertEquals(rowsUnder("The scenarios").sort(), [...names].sort());
});

Deno.test("bench/README.md has a row of each peer that is named anywhere", async () => {
  const tasks = await loadTasks(EFFORTS.full);
  const named = new Set([
    ...PEER_NAMES,
    ...tasks.flatMap(({ peers = [], floor = [], rival = [] }) => [peers, floor, rival].flat()),
    ...(await loadGoals()).flatMap(({ peer, versus = [], bound = [] }) =>
      [peer, versus, bound].flat()
    ),
  ]);
  const rows = rowsUnder("The peers");
  assertEquals([...named].filter((name) => !rows.includes(name)), []);
  assertEquals(rows.length, new Set(rows).size);
});

Deno.test("bench/README.md names options that there are", () => {
  const options = new Set(PAGE.match(/(?<=[`\s])--[a-z][a-z-]*/g));
  options.delete("--help");
  assertEquals([...options].filter((option) => !USAGE.includes(`  ${option} `)), []);
});
