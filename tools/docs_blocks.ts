/**
 * What Markdown needs to be read on a page as wide as a phone: clauses whose lines are broken anew,
 * and columns of sentences that stay wide enough for one.
 *
 * @module
 */

/** A fenced block, whole. The odd parts of a text that is split by it are blocks. */
const BLOCK = /(^```[^]*?^```$)/m;
const CLAUSE = /^\[([a-z]+\.[a-z][a-z0-9_]*)\] ([^]*)$/;
const TABLE = /(?:^\|.*\|\n){3,}/gm;
/** Letters, from which on a column is one of sentences. */
const LONG = 30;

/** The text for the generator of the site. */
export function layBlocks(text: string): string {
  return text.split(BLOCK).map((part, index) =>
    index % 2 === 1 ? layBlock(part) : part.replace(TABLE, markLongColumns)
  ).join("");
}

/** Clauses as sentences; what has no language, in none: the generator takes it for TypeScript. */
function layBlock(block: string): string {
  const bare = /^```\n([^]*)```$/.exec(block)?.[1];
  if (bare === undefined) return block;
  const clauses = bare.trim().split(/\n\n+/).map((each) => CLAUSE.exec(each));
  if (clauses.includes(null)) return `\`\`\`text\n${bare}\`\`\``;
  const sentences = clauses.map((clause) => {
    const [, id, body] = clause!;
    return `<p id="${id}"><b>[${id}]</b> ${toHtml(body!)}</p>`;
  });
  return `<div class="clauses">\n${sentences.join("\n")}\n</div>`;
}

/** Spans of code are all that clauses have of Markdown. */
function toHtml(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\n", " ")
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

/** Heads of long columns get a class, by which the style of the site gives them a width. */
function markLongColumns(table: string): string {
  const [head, line, ...rows] = table.trimEnd().split("\n").map(cellsOf) as [string[], string[]];
  const marked = head.map((title, column) => {
    const isLong = rows.some((row: string[]) => wordsOf(row[column] ?? "").length > LONG);
    return isLong && column > 0 && column < head.length - 1
      ? ` <span class="long">${title.trim()}</span> `
      : title;
  });
  return [marked, line, ...rows].map((row) => row.join("|")).join("\n") + "\n";
}

/** The cells of a row, and what stands before the first stroke and after the last one. */
function cellsOf(row: string): string[] {
  return row.split(/(?<!\\)\|/);
}

/** What a reader sees of Markdown, about. */
function wordsOf(cell: string): string {
  return cell.trim().replaceAll(/\]\([^)]*\)/g, "").replaceAll(/[[`*]/g, "");
}
