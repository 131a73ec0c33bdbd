import { assertEquals, assertThrows } from "@std/assert";
import { bundleModules } from "./build_modules.ts";
import { ENTRIES } from "./build_entries.ts";
import { stopBundler } from "./build_scripts.ts";
import { EARLY, hoist } from "./build_sources.ts";

const ROOT = await Deno.realPath(`${import.meta.dirname}/..`);

const TEXT = `export function a(b: number): number {
  return b + c(b);
}

function c(
  d: number,
): number {
  return d;
}

export function ab(): void {}
`;

Deno.test("hoist: a function stands in parentheses, and each line where it was", () => {
  assertEquals(
    hoist(TEXT, ["a", "c"]),
    TEXT.replace("export function a(", "export const a = (function(")
      .replace("function c(", "const c = (function(")
      .replaceAll("\n}\n", "\n});\n"),
  );
});

Deno.test("hoist: a function that is not there, or is no longer called so, is a mistake", () => {
  assertThrows(() => hoist(TEXT, ["b"]), Error, "There is no function b");
});

Deno.test("the bundler keeps the parentheses of all", async () => {
  const files = await bundleModules(ROOT, ENTRIES).finally(stopBundler);
  const { text } = files.find(({ path }) => path === "millrace.js")!;
  const count = Object.values(EARLY).flat().length;
  assertEquals(text.match(/[,\s][\w$]+=\(function\(/g)?.length, count);
});
