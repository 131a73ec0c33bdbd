import { assertEquals, assertMatch, assertThrows } from "@std/assert";
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

const CLASS = `export abstract class A<T> extends B {
  readonly #c: T;

  abstract get d(): number;

  override e(f: T): T {
    this.#c = f;
    return f;
  }

  g(): void {
    super.g();
  }
}
`;

Deno.test("hoist: a method is set in a static block, and each line stays where it was", () => {
  const text = hoist(CLASS, ["A.e"]);
  const start = text.indexOf("export");
  assertMatch(text.slice(0, start), /^import \{ setGetter, setMethod \} from "[^"\n]+"; $/);
  assertEquals(
    text.slice(start),
    CLASS.replace("abstract class A", "const A = PURE_$COMMENT(() => { class A")
      .replace("  override e(", '  static { setMethod(this, "e", (function(')
      .replace("return f;\n  }", "return f;\n  })); }")
      .replace(/\}\n$/, "} return A; })();\n"),
  );
});

Deno.test("hoist: a getter is set as one, and a private method becomes a private field", () => {
  const text = `class A {
  get b(): number {
    return this.#c();
  }

  #c(): number {
    return 1;
  }
}
`;
  const own = hoist(text, ["A.get b", "A.#c"]);
  assertEquals(
    own.slice(own.indexOf("const A")),
    text.replace("class A", "const A = PURE_$COMMENT(() => { class A")
      .replace("  get b(", '  static { setGetter(this, "b", (function(')
      .replace("#c();\n  }", "#c();\n  })); }")
      .replace("  #c():", "  static #early_c = (function():")
      .replace("return 1;\n  }", "return 1;\n  }); #c = A.#early_c;")
      .replace(/\}\n$/, "} return A; })();\n"),
  );
  assertThrows(() => hoist(text, ["A.get c"]), Error, "There is no method get c");
  assertThrows(() => hoist(text, ["A.#b"]), Error, "There is no method #b");
});

Deno.test("hoist: a method that is not there, or calls that of a class above, is a mistake", () => {
  assertThrows(() => hoist(CLASS, ["A.h"]), Error, "There is no method h");
  assertThrows(() => hoist(CLASS, ["A.g"]), Error, "There is no method g");
  assertThrows(() => hoist(CLASS, ["B.e"]), Error, "There is no class B");
});

Deno.test("the bundler keeps the parentheses of all, and what a pure call says", async () => {
  const files = await bundleModules(ROOT, ENTRIES).finally(stopBundler);
  const textOf = (entry: string) => files.find(({ path }) => path === entry)!.text;
  const namesIn = (modules: RegExp) =>
    Object.entries(EARLY).filter(([path]) => modules.test(path)).flatMap(([, each]) => each);
  const isMethod = (name: string) => name.includes(".");
  const names = namesIn(/^(?!compat\/|call)/);
  const methods = names.filter(isMethod);
  const hidden = methods.filter((name) => name.includes("#"));
  const classes = new Set(methods.map((name) => name.split(".")[0]));
  const text = textOf("millrace.js");
  const count = (pattern: RegExp) => text.match(pattern)?.length;
  assertEquals(count(/[,\s][\w$]+=\(function\(/g), names.length - methods.length);
  assertEquals(count(/"\w+",\(function\(/g), methods.length - hidden.length);
  assertEquals(count(/static ?#\w+=\(function\(/g), hidden.length);
  assertEquals(count(/=\/\*@__PURE__\*\/\(\(\)=>\{class /g), classes.size);
  // Of others, too, this entry has some of its own.
  const ofCalls = new Set(textOf("call.js").match(/(?<=")\w+(?=",\(function\()/g));
  const missing = namesIn(/^call/).filter(isMethod)
    .filter((name) => !ofCalls.has(name.split(".")[1]!.replace("get ", "")));
  assertEquals(missing, []);
  assertEquals(files.filter((file) => file.text.includes("PURE_$")), []);
});
