/**
 * Which names of the sources a user of the npm package can meet: the classes that are exported keep
 * theirs, and so do all of their members, and what else a declaration shows. The others are made
 * short.
 *
 * @module
 */
import ts from "typescript";
import type { Entry } from "./build_entries.ts";
import { SOURCE_OPTIONS } from "./build_types.ts";

/** What the scripts have to know of the names in the sources. */
export interface Names {
  /** The classes that are exported. */
  classes: Set<string>;
  /** The members of other classes that nobody but the sources names. */
  internal: Set<string>;
}

/** Finds the names in the sources of the entries. */
export function findNames(root: string, entries: readonly Entry[]): Names {
  const paths = entries.map(({ source }) => `${root}/${source}`);
  const program = ts.createProgram({ rootNames: paths, options: SOURCE_OPTIONS });
  const checker = program.getTypeChecker();
  const classes = new Set<string>();
  const shown = new Set<ts.Node>();
  const names = new Set<string>();
  const isPlatform = (node: ts.Node) => program.isSourceFileDefaultLibrary(node.getSourceFile());

  /** Notes what a declaration says, and what the types that it names say. */
  function show(symbol: ts.Symbol | undefined): void {
    if (symbol === undefined) return;
    const { flags } = symbol;
    if ((flags & ts.SymbolFlags.Alias) !== 0) return show(checker.getAliasedSymbol(symbol));
    for (const declaration of symbol.declarations ?? []) {
      if (!isShowable(declaration) || shown.has(declaration) || isPlatform(declaration)) continue;
      shown.add(declaration);
      ts.forEachChild(declaration, look);
    }
  }

  function look(node: ts.Node): void {
    if (ts.isBlock(node) || isInternal(node)) return;
    if (isMember(node) || ts.isPropertyAssignment(node)) names.add(nameOf(node));
    if (ts.isIdentifier(node)) show(checker.getSymbolAtLocation(node));
    ts.forEachChild(node, look);
  }

  for (const path of paths) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(path)!)!;
    for (const symbol of checker.getExportsOfModule(module)) {
      show(symbol);
      for (const each of checker.getAliasedSymbol(symbol).declarations ?? []) {
        if (ts.isClassDeclaration(each)) classes.add(nameOf(each));
      }
    }
  }
  const internal = new Set<string>();
  for (const file of program.getSourceFiles()) {
    const isOwn = !isPlatform(file);
    visit(file, (node) => {
      // What a text names must be found by it: `"name" in value`.
      if (isOwn && ts.isStringLiteral(node)) names.add(node.text);
      if (!isMember(node)) return;
      // A class of a user's may extend ours, and have members of any short name.
      if (!isOwn || shown.has(node.parent)) names.add(nameOf(node));
      else if (ts.isClassElement(node)) internal.add(nameOf(node));
    });
  }
  for (const name of [...names, ""]) internal.delete(name);
  return { classes, internal };
}

function isShowable(node: ts.Node): boolean {
  return ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) || ts.isFunctionDeclaration(node) ||
    ts.isVariableDeclaration(node);
}

function isMember(node: ts.Node): node is ts.ClassElement | ts.TypeElement {
  return ts.isClassElement(node) || ts.isTypeElement(node);
}

/** Whether it is nothing that users are to name, and a declaration leaves its type away. */
function isInternal(node: ts.Node & { readonly name?: ts.Node }): boolean {
  const { Private } = ts.ModifierFlags;
  return (ts.getCombinedModifierFlags(node as ts.Declaration) & Private) !== 0 ||
    node.name !== undefined && ts.isPrivateIdentifier(node.name) ||
    ts.getJSDocTags(node).some(({ tagName }) => tagName.text === "internal");
}

/** The name of a declaration; empty for what has none that a program can write behind a dot. */
function nameOf(node: ts.Node & { readonly name?: ts.Node }): string {
  return node.name !== undefined && ts.isIdentifier(node.name) ? node.name.text : "";
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}
