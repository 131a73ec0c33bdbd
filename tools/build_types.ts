/**
 * Writes the declarations of the npm package, and checks programs against declarations, with the
 * TypeScript compiler.
 *
 * @module
 */
import ts from "typescript";
import oldest from "typescript_5.2";
import { type Entry, PACKAGE_NAME } from "./build_entries.ts";
import { folderOf } from "./build_libraries.ts";
import type { PackageFile } from "./build_package.ts";

/** The name of the package on the registry for Deno, which the examples in the sources import. */
export const SOURCE_NAME = "@millrace/millrace";

const SOURCES = "impl-ts/src";

/**
 * What the sources use of Deno, so far as their declarations need it: Deno's own check has seen the
 * rest, and the compiler for npm knows no Deno.
 */
const DENO = `
declare namespace Deno {
  type ForeignLibraryInterface = Record<string, unknown>;
  interface DynamicLibrary<S> {
    symbols: { [K in keyof S]: (...given: any[]) => any };
  }
  const build: { os: string; arch: string };
  const pid: number;
  const permissions: { requestSync(what: object): { state: string } };
  const errors: { NotCapable: new (message: string) => Error };
  function dlopen<S>(name: string, symbols: S): DynamicLibrary<S>;
  class UnsafePointerView {
    constructor(pointer: object);
    getInt32(): number;
    static getArrayBuffer(pointer: object, size: number): ArrayBuffer;
  }
  class UnsafePointer {
    static create(address: bigint): object | null;
  }
}
interface ImportMeta {
  url: string;
}
`;
const DENO_PATH = "/deno.d.ts";

/**
 * The declarations of everything that the entries reach, a file for each source, below `types/`.
 *
 * @throws {Error} with the compiler's words if the sources do not compile.
 */
export function declarations(root: string, entries: readonly Entry[]): PackageFile[] {
  const files: PackageFile[] = [];
  const options: ts.CompilerOptions = {
    ...CHECKS,
    lib: ["lib.esnext.d.ts", "lib.dom.d.ts"],
    allowImportingTsExtensions: true,
    declaration: true,
    emitDeclarationOnly: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    rootDir: `${root}/${SOURCES}`,
    outDir: "/types",
    // The library's own declarations speak of Node's types, and leave some modules out.
    paths: {
      "@opentelemetry/api": [
        `${folderOf("@opentelemetry/api", root)}/dist/index.d.cts`,
      ],
      "cbor-x/*": [`${folderOf("cbor-x", root)}/index.d.ts`],
      "hdr-histogram-js": [`${folderOf("hdr-histogram-js", root)}/dist/index.d.ts`],
    },
    skipLibCheck: true,
  };
  const program = ts.createProgram({
    rootNames: [DENO_PATH, ...entries.map(({ source }) => `${root}/${source}`)],
    options,
    host: hostWithDeno(options),
  });
  const problems = [...ts.getPreEmitDiagnostics(program)];
  const { diagnostics } = program.emit(undefined, (path, text) => {
    files.push({ path: path.replace(/^\//, ""), text: forPackage(text) });
  });
  const told = describe([...problems, ...diagnostics]);
  if (told.length > 0) throw new Error(`Cannot write declarations:\n${told.join("\n")}`);
  return files.sort((a, b) => a.path < b.path ? -1 : 1);
}

/** The compiler's own, which finds the declarations of Deno too. */
function hostWithDeno(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const isDeno = (path: string) => path === DENO_PATH;
  return {
    ...host,
    fileExists: (path) => isDeno(path) || host.fileExists(path),
    getSourceFile: (path, ...more) =>
      isDeno(path)
        ? ts.createSourceFile(path, DENO, ts.ScriptTarget.ESNext)
        : host.getSourceFile(path, ...more),
  };
}

/** The oldest compiler that the declarations are for, as the README says. */
export const OLDEST = oldest as unknown as typeof ts;

/** Whose way to find modules a program is compiled for. */
export type Resolution = "nodenext" | "bundler";

/**
 * What a compiler has to say about a program, one line for each problem. The program gets what a
 * compiler takes for ES2022 by default, `dom` with it, or the libraries that are named.
 */
export function checkProgram(
  paths: string[],
  libraries?: readonly string[],
  resolution: Resolution = "nodenext",
  compiler: typeof ts = ts,
): string[] {
  const isNode = resolution === "nodenext";
  const options: ts.CompilerOptions = {
    ...CHECKS,
    ...(libraries && { lib: libraries.map((name) => `lib.${name}.d.ts`) }),
    noEmit: true,
    module: isNode ? ts.ModuleKind.NodeNext : ts.ModuleKind.ESNext,
    moduleResolution: isNode ? ts.ModuleResolutionKind.NodeNext : ts.ModuleResolutionKind.Bundler,
  };
  const program = compiler.createProgram({ rootNames: paths, options });
  return describe(compiler.getPreEmitDiagnostics(program));
}

const CHECKS: ts.CompilerOptions = {
  // The declarations of the platform are not ours to check; those of the package are.
  skipDefaultLibCheck: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: ts.ScriptTarget.ES2022,
  types: [],
};

/**
 * Declarations name each other as scripts, the package as npm knows it, and the part of the
 * language that is newer than what a user's compiler may assume. Before TypeScript 5.7, a
 * `Uint8Array` does not say which buffer it has: what `slice` returns is the same type with or
 * without that.
 */
function forPackage(text: string): string {
  const head = text.includes("[Symbol.dispose]")
    ? '/// <reference lib="esnext.disposable" />\n'
    : "";
  return head + text
    .replace(/((?:\bfrom|\bimport)\s*\(?\s*["']\.{1,2}\/[^"'\n]+)\.ts(["'])/g, "$1.js$2")
    .replaceAll("Uint8Array<ArrayBuffer>", 'ReturnType<Uint8Array["slice"]>')
    .replaceAll(SOURCE_NAME, PACKAGE_NAME);
}

function describe(diagnostics: readonly ts.Diagnostic[]): string[] {
  return diagnostics.map(({ file, start, messageText }) => {
    const text = ts.flattenDiagnosticMessageText(messageText, "\n");
    if (file === undefined || start === undefined) return text;
    const { line } = file.getLineAndCharacterOfPosition(start);
    return `${file.fileName.split("/").at(-1)}:${line + 1}: ${text}`;
  });
}
