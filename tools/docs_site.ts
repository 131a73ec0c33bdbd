/**
 * Makes the site with TypeDoc: the reference of TypeScript from the sources, the pages beside it,
 * one search over both. What it writes needs no server and no network.
 *
 * @module
 */
import * as td from "typedoc";
import ts from "typescript";
import { specifierOf } from "./build_entries.ts";
import type { Entry } from "./build_entries.ts";
import { GROUP_NAMES, type Stage, ZIG_LINK } from "./docs_pages.ts";

/** The group of the modules, after the guide to them. */
const REFERENCE = "Reference of TypeScript";
/** Those of the blocks of code in the pages, and of some that may come. */
const LANGUAGES =
  "bash c cpp css diff html javascript json jsonc makefile python rust sh toml typescript yaml zig";
/** The page of Zig's generator, from the folder of the site. */
export const ZIG_PAGE = "zig/index.html";

/** What to make the site of, and where. */
export interface SiteOptions {
  root: string;
  entries: readonly Entry[];
  stage: Stage;
  /** The folder in which the files of the stage are. */
  staged: string;
  out: string;
}

/**
 * Writes the site. Its folder holds nothing else then.
 *
 * @throws {Error} with all that the generator complains about, broken links among it.
 */
export async function writeSite(options: SiteOptions): Promise<void> {
  const { root, entries, staged, out } = options;
  const app = await td.Application.bootstrap(generatorOptions(options));
  const faults: string[] = [];
  app.logger = new Listener(faults);
  app.options.setCompilerOptions(entries.map(({ source }) => `${root}/${source}`), COMPILER, []);
  app.renderer.defineRouter("repository", RepositoryRouter);
  app.renderer.on(td.Renderer.EVENT_END_PAGE, (page: td.PageEvent) => {
    const above = "../".repeat(page.url.split("/").length - 1);
    page.contents = (page.contents ?? "").replaceAll(ZIG_LINK, above + ZIG_PAGE);
  });
  app.converter.on(td.Converter.EVENT_RESOLVE_BEGIN, ({ project }: td.Context) => {
    // Comments in the sources link to pages where these are, and not to their copies.
    for (const page of project.documents ?? []) {
      const path = project.files.getReflectionPath(page)!;
      const place = td.normalizePath(root + path.slice(staged.length));
      project.files.registerReflectionPath(place, page);
    }
    for (const each of project.children ?? []) {
      if (!each.kindOf(td.ReflectionKind.Module)) continue;
      each.comment ??= new td.Comment();
      each.comment.blockTags.push(new td.CommentTag("@group", [{ kind: "text", text: REFERENCE }]));
    }
  });
  const points = app.getEntryPoints() ?? [];
  for (const point of points) {
    const entry = entries.find(({ source }) => point.sourceFile.fileName === `${root}/${source}`)!;
    point.displayName = specifierOf(entry);
  }
  const project = app.converter.convert(points);
  app.validate(project);
  await app.generateDocs(project, out);
  if (points.length < entries.length) faults.push("some entries are not in the reference");
  if (faults.length > 0) throw new Error(`Cannot write the site:\n${faults.join("\n")}`);
}

function generatorOptions(
  { root, entries, stage, staged, out }: SiteOptions,
): Partial<td.TypeDocOptions> {
  return {
    name: "Millrace",
    out,
    readme: `${staged}/${stage.start}`,
    projectDocuments: stage.pages.map(({ path }) => `${staged}/${path}`),
    entryPoints: entries.map(({ source }) => `${root}/${source}`),
    // Paths of pages are from there, and so are theirs in the site.
    basePath: staged,
    router: "repository",
    customCss: `${import.meta.dirname}/docs.css`,
    highlightLanguages: LANGUAGES.split(" "),
    groupOrder: [GROUP_NAMES[0]!, REFERENCE, ...GROUP_NAMES.slice(1)],
    navigation: { includeGroups: true, includeCategories: false, includeFolders: false },
    sort: ["kind", "instance-first", "alphabetical-ignoring-documents"],
    sortEntryPoints: false,
    searchInDocuments: true,
    excludePrivate: true,
    excludeInternal: true,
    disableSources: true,
    // Deno's check has seen the sources, and this compiler knows no Deno.
    skipErrorChecking: true,
    validation: { invalidLink: true, invalidPath: true, notDocumented: false, notExported: false },
  };
}

const COMPILER: ts.CompilerOptions = {
  target: ts.ScriptTarget.ESNext,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.esnext.d.ts", "lib.dom.d.ts"],
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  types: [],
};

/** Collects what is wrong, and prints nothing. */
class Listener extends td.Logger {
  readonly #faults: string[];

  constructor(faults: string[]) {
    super();
    this.#faults = faults;
  }

  override log(message: string, level: td.LogLevel): void {
    if (level >= td.LogLevel.Warn) this.#faults.push(message);
  }
}

/** Pages have the paths that their files have in the repository. */
class RepositoryRouter extends td.KindRouter {
  protected override getIdealBaseName(reflection: td.Reflection): string {
    const path = reflection.isDocument()
      ? reflection.project.files.getReflectionPath(reflection)
      : undefined;
    if (path === undefined) return super.getIdealBaseName(reflection);
    const base = this.application.options.getValue("basePath");
    return path.slice(base.length + 1).replace(/\.md$/, "");
  }
}
