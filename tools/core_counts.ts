/**
 * Prints how much there is in the TypeScript core: what a reader has to know, and a runtime to
 * compile. Its bytes are in the table of `build_sizes.ts`.
 *
 *     deno run -A tools/core_counts.ts
 *
 * @module
 */
import ts from "typescript";
import { stopBundler } from "./build_scripts.ts";
import { IMPORTS, moduleBytes } from "./build_sizes.ts";
import { listFiles } from "./files.ts";

const CORE = /^impl-ts\/src\/(?:error\.ts$|(?:memory|wait|ring|codec|pipe|port)\/)/;
const OTHER = /(?:_test|fixture)\.ts$|\/memory\/layout\.ts$/;
/** Where the class is whose public members are counted. */
const PORT = "impl-ts/src/port/port.ts";

const HIDDEN = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;

/** What is counted, and how many of it there shall be at most. */
const GOALS = {
  "files": 18,
  "lines of code, without comments": 3_200,
  "classes": 12,
  "fields": 130,
  "functions": 330,
  "public members of Port": 32,
};

type Counts = Record<keyof typeof GOALS, number>;

/** Counts what is in one file. */
function count(source: ts.SourceFile, counts: Counts): void {
  counts["files"]++;
  const lines = new Set<number>();
  const visit = (node: ts.Node) => {
    if (ts.isClassLike(node)) counts["classes"]++;
    if (ts.isPropertyDeclaration(node) && !isStatic(node)) counts["fields"]++;
    if (ts.isFunctionLike(node) && "body" in node && node.body) counts["functions"]++;
    if (node.getChildCount(source) === 0 && node.getWidth(source) > 0 && !isDoc(node)) {
      const [start, end] = [node.getStart(source), node.getEnd()]
        .map((at) => source.getLineAndCharacterOfPosition(at).line) as [number, number];
      for (let line = start; line <= end; line++) lines.add(line);
    }
    for (const child of node.getChildren(source)) if (!isDoc(child)) visit(child);
  };
  visit(source);
  counts["lines of code, without comments"] += lines.size;
}

/** Counts the public members of a class: a getter and its setter are one. */
function countMembers(source: ts.SourceFile, name: string): number {
  const found = source.statements.find((each) =>
    ts.isClassDeclaration(each) && each.name?.text === name
  ) as ts.ClassDeclaration;
  const names = found.members.flatMap((member) => {
    const isHidden = ts.getJSDocTags(member).some(({ tagName }) => tagName.text === "internal") ||
      (ts.getCombinedModifierFlags(member) & HIDDEN) !== 0;
    if (isHidden || member.name === undefined || ts.isPrivateIdentifier(member.name)) return [];
    return [(isStatic(member) ? "static " : "") + member.name.getText(source)];
  });
  return new Set(names).size;
}

function isStatic(node: ts.Declaration): boolean {
  return (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Static) !== 0;
}

function isDoc(node: ts.Node): boolean {
  return node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode;
}

/** Counts what is in some files. */
async function countAll(root: string, paths: readonly string[]): Promise<Counts> {
  const parse = async (path: string) =>
    ts.createSourceFile(path, await Deno.readTextFile(`${root}/${path}`), ts.ScriptTarget.ESNext);
  const counts = Object.fromEntries(Object.keys(GOALS).map((name) => [name, 0])) as Counts;
  for (const path of paths) count(await parse(path), counts);
  counts["public members of Port"] = countMembers(await parse(PORT), "Port");
  return counts;
}

async function main(root: string): Promise<void> {
  const core = (await listFiles(root)).filter((path) => CORE.test(path) && !OTHER.test(path));
  const port = IMPORTS.find(({ names }) => names === "Port")!;
  const bundled = await moduleBytes(root, port).finally(stopBundler);
  const ofPort = core.filter((path) => bundled.has(path.slice("impl-ts/src/".length)));
  const columns = [await countAll(root, core), await countAll(root, ofPort), GOALS];
  const row = (name: string, cells: string[]) =>
    name.padEnd(34) + cells.map((cell) => cell.padStart(10)).join("");
  console.log(row("the core, without tests", ["all", "{ Port }", "goal"]));
  for (const name of Object.keys(GOALS) as (keyof Counts)[]) {
    console.log(row(name, columns.map((each) => each[name].toLocaleString("en"))));
  }
}

if (import.meta.main) await main(await Deno.realPath(`${import.meta.dirname}/..`));
