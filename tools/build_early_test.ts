/** Which functions are marked to be compiled with their module. */

import { assertEquals } from "@std/assert";
import { markEarly, readEarly } from "./build_early.ts";

const TEXT = `function made() {
  return 1;
}
var constant = made();
function called(value) {
  return value + constant;
}
function idle() {
  return called(2);
}
export {
  called,
  idle
};`;

Deno.test("readEarly: what runs first, without what the module itself has called", async () => {
  const names = await readEarly(
    TEXT,
    ({ called }) => void (called as (value: number) => number)(1),
  );
  assertEquals([...names], ["called"]);
});

Deno.test("markEarly: brackets around these functions, lines stay where they are", async () => {
  const marked = markEarly(TEXT, new Set(["called"]));
  const lines = TEXT.split("\n");
  lines[4] = "var called = (function(value) {";
  lines[6] = "});";
  assertEquals(marked.split("\n"), lines);
  const module = await import(`data:text/javascript,${encodeURIComponent(marked)}`);
  assertEquals([module.called(3), module.idle()], [4, 3]);
});
