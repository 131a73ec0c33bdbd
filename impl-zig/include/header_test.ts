// Holds the headers and the library together: what one declares the other exports, with the same
// names, types and numbers; and compilers of C and C++ take it without a warning.

import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { findProgram } from "../../tools/programs.ts";
import { run } from "../../tools/run.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The files of a folder whose names match, in order. */
function names(folder: string, pattern: RegExp): string[] {
  return [...Deno.readDirSync(`${ROOT}${folder}`)].map(({ name }) => name)
    .filter((name) => pattern.test(name)).sort();
}

/** Their texts, after one another. */
function texts(folder: string, files: string[]): string {
  return files.map((name) => Deno.readTextFileSync(`${ROOT}${folder}/${name}`)).join("\n");
}

const HEADERS = names("impl-zig/include", /\.h$/);
const HEADER = texts("impl-zig/include", HEADERS);
const CODE = HEADER.replace(/\/\*[\s\S]*?\*\//g, "");
const ZIG = Deno.readTextFileSync(`${ROOT}impl-zig/src/c.zig`) +
  texts("impl-zig/src/c", names("impl-zig/src/c", /^(?!.*(_test|fixture)\.zig$)/));

/** A name with its type, as Zig would write it. */
type Typed = [name: string, type: string];

/** What each type of C is in Zig. Pointers to pointers and to results are checked when used. */
const NUMBERS: Record<string, string> = {
  size_t: "usize",
  int32_t: "i32",
  uint32_t: "u32",
  uint64_t: "u64",
  uint8_t: "u8",
  millrace_allocate: "?Allocate",
  millrace_handler: "?Handler",
  millrace_on_item: "?OnItem",
};

/** One declaration, such as `const void *payload`. */
function fromC(text: string): Typed {
  const [, type = "", name = ""] = /^(.*?)\s*(\w+)$/s.exec(text.trim()) ?? [];
  if (type === "const char *") return [name, "?[*:0]const u8"];
  if (type.endsWith("*")) {
    return [name, type.startsWith("const ") ? "?*const anyopaque" : "?*anyopaque"];
  }
  return [name, NUMBERS[type] ?? `unknown: ${type}`];
}

/** One declaration, such as `payload: ?*const anyopaque`. */
function fromZig(text: string): Typed {
  const [, name = "", type = ""] = /^(\w+): (.*?)(?: = (?:\d+|null))?$/.exec(text.trim()) ?? [];
  return [name, type === "Status" || type === "arguments.Status" ? "i32" : type];
}

/** The declarations between commas or semicolons. */
function list(text: string, separator: string, read: (text: string) => Typed): Typed[] {
  return text.split(separator).map((item) => item.trim())
    .filter((item) => item !== "" && item !== "void").map(read);
}

Deno.test("millrace.h: declares the calls that the library exports, type by type", () => {
  const declared = [...CODE.matchAll(/^([\w ]+[ *])(millrace_\w+)\(([^)]*)\);/gm)]
    .map(([, type = "", name = "", parameters = ""]) => ({
      name,
      // Nothing that the library returns is NULL.
      result: fromC(`${type.trim()} result`)[1].replace("?[*:0]", "[*:0]"),
      parameters: list(parameters, ",", fromC),
    }));
  const exported = [...ZIG.matchAll(/^pub export fn (\w+)\(([^)]*)\) (.*?) \{/gm)]
    .map(([, name = "", parameters = "", result = ""]) => ({
      name,
      result: fromZig(`result: ${result}`)[1],
      parameters: list(parameters, ",", fromZig),
    }));
  const byName = (a: { name: string }, b: { name: string }) => a.name < b.name ? -1 : 1;
  assertEquals(declared.sort(byName), exported.sort(byName));
  assert(declared.length > 30, `only ${declared.length} calls were found`);
});

Deno.test("millrace.h: its structures are those of the library, field by field", () => {
  const structures = {
    channel: "Ring",
    bytes: "Piece",
    message: "Message",
    property_value: "Value",
    stats: "Stats",
    value: "ListValue",
    failure: "Failure",
    fanout_message: "FanoutMessage",
    stream_sizes: "Sizes",
  };
  const found = [...CODE.matchAll(/^typedef struct millrace_(\w+) \{([^}]*)\}/gm)];
  assertEquals(found.map(([, name]) => name).sort(), Object.keys(structures).sort());
  for (const [, name = "", fields = ""] of found) {
    const own = structures[name as keyof typeof structures];
    const [, zig = ""] = new RegExp(`const ${own} = extern struct \\{([^}]*)\\}`).exec(ZIG) ?? [];
    assertEquals(list(fields, ";", fromC), list(zig, ",", fromZig), name);
  }
});

Deno.test("millrace.h: its statuses are those of the library", () => {
  const numbers = (text: string, pattern: RegExp) =>
    [...text.matchAll(pattern)].map(([, name = "", value]) => [name.toLowerCase(), Number(value)])
      .sort();
  const [, statuses = ""] = /enum \{([^}]*MILLRACE_DONE[^}]*)\}/.exec(CODE) ?? [];
  const zig = numbers(ZIG, /^pub const (\w+): Status = (-?\d+);/gm);
  assertEquals(numbers(statuses, /MILLRACE_(\w+) = (-?\d+)/g), zig);
  assertEquals(zig.length, 11);
});

Deno.test("README and its pages: name every call of the header", async () => {
  const names = ["README", "calls", "streams", "digest", "fanout", "properties", "meter"];
  const pages = names.map((name) => Deno.readTextFile(`${ROOT}impl-zig/${name}.md`));
  const readme = (await Promise.all(pages)).join("\n");
  const missing = [...CODE.matchAll(/\b(millrace_\w+)\(/g)].map(([, name = ""]) => name)
    .filter((name) => !readme.includes(`\`${name}\``));
  assertEquals(missing, []);
});

/** Compiles the header alone, warnings being errors. */
async function compile(compiler: string[], suffix: string, standard: string): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-header-" });
  try {
    const source = `${folder}/header.${suffix}`;
    const includes = HEADERS.map((name) => `#include <${name}>\n`);
    await Deno.writeTextFile(source, includes.join(""));
    const strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", `-std=${standard}`];
    const include = `-I${ROOT}impl-zig/include`;
    const command = [...compiler, ...strict, include, "-c", source, "-o", `${folder}/header.o`];
    const { code, output } = await run(command, { cwd: folder, timeoutMs: 120_000, echo: false });
    assertEquals(code, 0, output);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const tools = `${ROOT}.tools/bin`;
const cc = await findProgram(["cc", "gcc", "clang"], tools);
const cxx = await findProgram(["c++", "g++", "clang++"], tools);

for (
  const { name, compiler, suffix, standard } of [
    { name: "zig cc", compiler: ["zig", "cc"], suffix: "c", standard: "c99" },
    { name: "zig c++", compiler: ["zig", "c++"], suffix: "cc", standard: "c++11" },
    { name: "the system's C compiler", compiler: cc && [cc], suffix: "c", standard: "c99" },
    { name: "the system's C++ compiler", compiler: cxx && [cxx], suffix: "cc", standard: "c++11" },
  ]
) {
  Deno.test({
    name: `millrace.h: ${name} takes it as ${standard} without a warning`,
    ignore: compiler === undefined,
    fn: () => compile(compiler as string[], suffix, standard),
  });
}
