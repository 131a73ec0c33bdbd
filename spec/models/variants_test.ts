import { assert, assertEquals, assertMatch } from "@std/assert";
import { unite } from "./variants.ts";

const model = (step: string, start = "") => `
byte x;
inline bump(n) { x = x + (n) }
inline twice(n) { bump(n); if :: true -> { ${step} } fi }
proctype up(byte n) { twice(n) }
proctype other() { x = 1 }
init { ${start} atomic { run up((1 + 2)); run other() } }
`;

Deno.test("unite: what is the same stands there once, and what calls a variant is one", () => {
  const [union, ...more] = unite([model("x++"), model("x--"), model("x++")]);
  assertEquals(more, []);
  assertEquals(union!.variants, [0, 1, 2]);
  const count = (pattern: RegExp) => union!.text.match(pattern)?.length ?? 0;
  assertEquals(count(/inline bump_\d+/g), 1);
  assertEquals(count(/inline twice_\d+/g), 2);
  assertEquals(count(/proctype up_\d+/g), 2);
  assertEquals(count(/proctype other_\d+/g), 1);
  assertEquals(count(/byte x;/g), 1);
});

Deno.test("unite: init starts the processes of the variant that the environment names", () => {
  const [union] = unite([model("x++"), model("x--"), model("x++")]);
  const start = union!.text.slice(union!.text.indexOf("init {"));
  const first = /c_expr \{ variant == 0 \|\| variant == 2 \} -> run up_(\d+)\(\(1 \+ 2\)\)/.exec(
    start,
  );
  const second = /c_expr \{ variant == 1 \} -> run up_(\d+)\(\(1 \+ 2\)\)/.exec(start);
  assert(!/\b(run|proctype|inline) (up|other|twice|bump)\b/.test(union!.text));
  const twiceOf = (up: string) =>
    new RegExp(`proctype up_${up}\\(byte n\\) \\{ (twice_\\d+)`).exec(union!.text)![1]!;
  const stepOf = (twice: string) =>
    new RegExp(`inline ${twice}\\(n\\) .* -> \\{ (.*) \\} fi`).exec(union!.text)![1];
  assertEquals(stepOf(twiceOf(first![1]!)), "x++");
  assertEquals(stepOf(twiceOf(second![1]!)), "x--");
});

Deno.test("unite: variants that declare or begin otherwise are apart", () => {
  const unions = unite([
    model("x++"),
    `bool y;${model("x++")}`,
    model("x++", "x = 2;"),
    model("x"),
  ]);
  assertEquals(unions.map(({ variants }) => variants), [[0, 3], [1], [2]]);
  assertMatch(unions[1]!.text, /bool y;/);
  assert(!/bool y;|x = 2/.test(unions[0]!.text));
});
