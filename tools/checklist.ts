/**
 * All duties of the specification by role, as a page: `./millrace generate --checklist` prints it,
 * and the site of `./millrace docs` has it. It follows from the chapters, so it is made on demand.
 *
 * @module
 */
import { type Clause, readClauses, ROLES } from "./clauses.ts";
import { table } from "./emit_tables.ts";
import type { TextFile } from "./files.ts";

/** Where the page is, beside the chapters that it links to. */
export const CHECKLIST = "spec/checklist.md";

const INTRODUCTION = `# Checklist

These are all duties of the specification by role, made from the chapters. A port that offers only
some chapters answers for the clauses of those. An endpoint is everything that takes part. It is a
sleeper while it waits, and a waker after it stored a word for which somebody may wait. It is a
writer or a reader of each of its channels and, if it offers calls, a caller and a callee.
`;

/** Makes the page from the chapters, which are among `files`. */
export function makeChecklist(files: readonly TextFile[]): string {
  const clauses = files.filter(({ path }) => /^spec\/\w+\.md$/.test(path))
    .flatMap((file) => readClauses(file).clauses);
  const sections = ROLES.map((role) => {
    const own = clauses.filter((clause) => clause.role === role);
    const rows = own.map((clause) => [linkTo(clause), clause.body]);
    const heading = `${role.charAt(0).toUpperCase()}${role.slice(1)}`;
    return `\n## ${heading}\n\n${table(["clause", "duty"], rows).join("\n")}\n`;
  });
  return INTRODUCTION + sections.join("");
}

function linkTo({ id, place }: Clause): string {
  return `[\`${id}\`](${place.slice("spec/".length, place.indexOf(":"))})`;
}
