/**
 * Checks the clauses of the specification and everything that cites them.
 *
 * A clause stands in a fenced block without a language, at the start of a line:
 * `[ring.publish] The writer MUST ...`, and ends at an empty line, the next clause or the fence.
 * A citation is the same name in brackets, in a comment or in prose. A name that no clause has
 * would look like a promise that somebody checked, so it is an error.
 *
 * @module
 */
import { keepComments, type Language } from "./comments.ts";
import { listFiles, readTexts, type TextFile } from "./files.ts";
import { linkProblems } from "./links.ts";

/** One duty, with a name. */
export interface Clause {
  id: string;
  place: string;
  keyword: string;
  /** Whose duty it is, the subject of its sentence; one of `ROLES`. */
  role: string;
  /** The sentence, on one line. */
  body: string;
}

/** Who can have a duty, in the order of the checklist. */
export const ROLES = [
  "creator",
  "endpoint",
  "sleeper",
  "waker",
  "writer",
  "reader",
  "port",
  "caller",
  "callee",
  "supervisor",
  "observer",
] as const;

const ROLE = new RegExp(`^An? (${ROLES.join("|")})\\b`);

/** A place that names a clause. */
export interface Citation {
  id: string;
  place: string;
}

const DEFINITION = /^\[([a-z]+)\.([a-z][a-z0-9_]*)\](.*)$/;
// Not after a name or a bracket, which would be an index, and not before `(`, a link. The very
// words of the pattern, `[noun.fact]`, explain it.
const CITATION = /(?<![\w\])])\[(?!noun\.fact\])([a-z]+\.[a-z][a-z0-9_]*)\](?!\()/g;
const TEST_NAME = /(?:\btest(?:\.\w+)?\(\s*|\btest\s+)("[^"\n]*")/g;
/** A duty that is longer is two, or an explanation. */
const WORDS_MAX = 40;
const KEYWORD = /\b(?:MUST NOT|SHOULD NOT|MUST|SHOULD|MAY)\b/g;

/** Who cites: the parts of the repository that the counts name. */
const READERS: { name: string; path: RegExp; language?: Language }[] = [
  { name: "TypeScript", path: /^impl-ts\/.*\.ts$/, language: "typescript" },
  { name: "Zig", path: /^impl-zig\/.*\.zig$/, language: "zig" },
  { name: "models", path: /^spec\/.*\.pml$/, language: "promela" },
  { name: "conformance", path: /^conformance\/.*\.ts$/, language: "typescript" },
  { name: "conformance", path: /^conformance\/.*\.zig$/, language: "zig" },
  { name: "conformance", path: /^conformance\/.*\.(md|json|jsonl)$/ },
  { name: "chapters", path: /^spec\/.*\.md$/ },
];

/** Where a clause is at home. Those of files were in `segment` once, and a name does not change. */
function chapterOf(id: string): string {
  return id.startsWith("segment.file_") ? "file" : id.slice(0, id.indexOf("."));
}

/** The clauses that one chapter defines, and what is wrong with them. */
export function readClauses({ path, text }: TextFile): { clauses: Clause[]; problems: string[] } {
  const clauses: Clause[] = [];
  const problems: string[] = [];
  const noun = path.replace(/^.*\//, "").replace(/\.md$/, "");
  let fence: string | undefined;
  let open: { clause: Clause; body: string } | undefined;
  const close = () => {
    if (open === undefined) return;
    const { clause, body } = open;
    clause.body = body.trim();
    clause.role = ROLE.exec(clause.body)?.[1] ?? "";
    if (clause.role === "") {
      problems.push(`${clause.place}: [${clause.id}] does not begin with its role: "A writer ..."`);
    }
    const keywords = body.match(KEYWORD) ?? [];
    if (keywords.length === 1) clause.keyword = keywords[0] as string;
    else problems.push(`${clause.place}: [${clause.id}] has ${keywords.length} duties, not one`);
    const words = clause.body.split(/\s+/).length;
    if (words > WORDS_MAX) {
      problems.push(`${clause.place}: [${clause.id}] has ${words} words, more than ${WORDS_MAX}`);
    }
    clauses.push(clause);
    open = undefined;
  };
  for (const [index, line] of text.split("\n").entries()) {
    const place = `${path}:${index + 1}`;
    if (line.startsWith("```")) {
      close();
      fence = fence === undefined ? line.slice(3).trim() : undefined;
      continue;
    }
    const match = fence === "" ? DEFINITION.exec(line) : null;
    if (match || line.trim() === "") close();
    if (match) {
      const id = `${match[1]}.${match[2]}`;
      if (chapterOf(id) !== noun) problems.push(`${place}: [${id}] stands in the chapter ${noun}`);
      open = { clause: { id, place, keyword: "", role: "", body: "" }, body: match[3] as string };
    } else if (open !== undefined) {
      // A keyword may be broken across two lines: MUST, NOT.
      open.body += ` ${line.trim()}`;
    }
  }
  if (fence !== undefined) problems.push(`${path}: a fenced block is never closed`);
  return { clauses, problems };
}

/** The clauses that a file names, where it may: in comments, in prose, in JSON strings. */
export function readCitations({ path, text }: TextFile, language?: Language): Citation[] {
  if (/\.jsonl?$/.test(path)) return jsonCitations(path, text);
  const visible = language === undefined
    ? keepProse(text)
    : keepTestNames(text, keepComments(text, language));
  return visible.split("\n").flatMap((line, index) => {
    if (language === undefined && DEFINITION.test(line)) line = line.replace(DEFINITION, "$3");
    return [...line.matchAll(CITATION)]
      .map((match) => ({ id: match[1] as string, place: `${path}:${index + 1}` }));
  });
}

/** The comments, and the names of tests, which cite too. */
function keepTestNames(text: string, comments: string): string {
  let result = comments;
  for (const match of text.matchAll(TEST_NAME)) {
    const name = match[1] as string;
    const at = match.index + match[0].length - name.length;
    result = result.slice(0, at) + name + result.slice(at + name.length);
  }
  return result;
}

/** Blanks fenced blocks that name a language: those hold examples. */
function keepProse(text: string): string {
  let fence: string | undefined;
  return text.split("\n").map((line) => {
    if (line.startsWith("```")) {
      fence = fence === undefined ? line.slice(3).trim() : undefined;
      return "";
    }
    return fence ? "" : line;
  }).join("\n");
}

// Digits and letters up to `f`, or `ff` and more of it, and nothing before them.
const UNMARKED = /(?<![\w.#/'-])(?:(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]+|f{2,})(?!\w)/g;
/** Two bytes or more in a span of code: what they are shows. */
const BYTES = /`[0-9a-f]{2}(?: [0-9a-f]{2})+`/g;

/** Hexadecimal numbers in prose and tables that do not begin with `0x`. */
export function unmarkedNumbers({ path, text }: TextFile): string[] {
  let isFenced = false;
  return text.split("\n").flatMap((line, index) => {
    if (line.startsWith("```")) isFenced = !isFenced;
    if (isFenced) return [];
    return [...line.replace(BYTES, "").matchAll(UNMARKED)].map(([number]) =>
      `${path}:${index + 1}: ${number} is hexadecimal, and does not begin with 0x`
    );
  });
}

/** In JSON, a clause is named by a member `clause`, or by several in `clauses`. */
function jsonCitations(path: string, text: string): Citation[] {
  const place = (id: string) => {
    const line = text.slice(0, text.indexOf(`"${id}"`)).split("\n").length;
    return `${path}:${line}`;
  };
  return [...text.matchAll(/"clauses?"\s*:\s*("[^"]*"|\[[^\]]*\])/g)].flatMap((match) =>
    [...(match[1] as string).matchAll(/"([^"]*)"/g)]
      .map((name) => ({ id: name[1] as string, place: place(name[1] as string) }))
  );
}

/** Everything that the tool finds out. */
export interface Report {
  problems: string[];
  lines: string[];
  /** The clauses that no implementation cites. */
  uncited: string[];
}

/** Checks definitions, citations and links of all files. */
export function inspect(files: TextFile[]): Report {
  const problems: string[] = [];
  const clauses = new Map<string, Clause>();
  for (const file of files.filter(({ path }) => /^spec\/[^/]+\.md$/.test(path))) {
    const found = readClauses(file);
    problems.push(...found.problems, ...unmarkedNumbers(file));
    for (const clause of found.clauses) {
      const first = clauses.get(clause.id);
      if (first) problems.push(`${clause.place}: [${clause.id}] is defined at ${first.place} too`);
      else clauses.set(clause.id, clause);
    }
  }
  const cited = new Map(READERS.map(({ name }) => [name, new Set<string>()]));
  for (const file of files) {
    const reader = READERS.find(({ path }) => path.test(file.path));
    if (reader === undefined) continue;
    for (const { id, place } of readCitations(file, reader.language)) {
      if (clauses.has(id)) cited.get(reader.name)?.add(id);
      else problems.push(`${place}: [${id}] is no clause`);
    }
  }
  problems.push(...linkProblems(files));
  return { problems, lines: summarize([...clauses.values()], cited), uncited: uncited() };

  function uncited(): string[] {
    const known = new Set([...cited.get("TypeScript") ?? [], ...cited.get("Zig") ?? []]);
    return [...clauses.keys()].filter((id) => !known.has(id));
  }
}

function summarize(clauses: Clause[], cited: Map<string, Set<string>>): string[] {
  const must = clauses.filter(({ keyword }) => keyword.startsWith("MUST")).length;
  const counts = [...cited].map(([name, ids]) => `${ids.size} in ${name}`).join(", ");
  return [`${clauses.length} clauses, ${must} of them MUST; cited: ${counts}`];
}

/** Runs the tool and returns its exit code. */
export async function main(args: string[], root: string): Promise<number> {
  if (args.length > 1 || (args[0] ?? "--uncited") !== "--uncited") {
    console.error("Usage: deno run -A tools/clauses.ts [--uncited]");
    return 2;
  }
  const { problems, lines, uncited } = inspect(await readTexts(root, await listFiles(root)));
  for (const problem of problems) console.error(problem);
  if (args.length > 0) { for (const id of uncited) console.log(`uncited: [${id}]`); }
  for (const line of lines) console.log(line);
  return problems.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args, `${import.meta.dirname}/..`));
