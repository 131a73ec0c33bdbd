// The modules of the floors of `start`: of the size that the goals have, and all of it code.

import { assert, assertEquals, assertMatch } from "@std/assert";
import * as esbuild from "esbuild";
import { MODULES, neverCalled, writeBareModules } from "./bundles.ts";
import { loadGoals } from "./goals.ts";

const goals = await loadGoals();
const SIZES: Readonly<Record<string, string>> = {
  "floor-text": "size/module/main/own/free/Port",
  "floor-turn": "size/module/main/own/free/SABMessagePort",
};

Deno.test("writeBareModules writes a module for each floor, as large as its goal", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await writeBareModules(folder);
    assertEquals(MODULES.map(({ peer }) => peer), Object.keys(SIZES));
    for (const { peer } of MODULES) {
      const text = await Deno.readTextFile(`${folder}/${peer}.js`);
      const goal = goals.find(({ scenario }) => scenario === SIZES[peer]);
      assertEquals(new TextEncoder().encode(text).length, goal?.at_most);
      const exports = await import(`data:text/javascript,${encodeURIComponent(text)}`);
      const [a, b] = peer === "floor-text"
        ? [exports.Port.create(), exports.Port]
        : [new exports.SABMessagePort(), exports.SABMessagePort];
      const other = b.from(peer === "floor-text" ? a.handoff() : a.postInit()[0]);
      if (peer === "floor-text") a.write({ id: 7 });
      else await a.postMessage({ id: 7 });
      assertEquals(other.read(), { id: 7 });
    }
  } finally {
    await esbuild.stop();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("neverCalled makes so many bytes of classes, the same each time", async () => {
  const text = neverCalled(20_000);
  assertEquals(text.length, 20_000);
  assertEquals(text, neverCalled(20_000));
  assert(text.trimEnd().length > 19_000);
  assertMatch(text, /^export class Unused0\{#a/);
  await import(`data:text/javascript,${encodeURIComponent(text)}`);
});
