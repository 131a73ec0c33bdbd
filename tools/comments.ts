/**
 * Finds what is comment in source text, so that `[ring.publish]` in a comment is a citation and
 * `words[ring.tail]` in code is not.
 *
 * @module
 */

/** Which marks a language has: block comments, quotes that end with the line, raw lines of Zig. */
export type Language = "typescript" | "zig" | "promela";

/** What ends inside one line, however it was opened: a stray quote then costs that line only. */
const LINE_QUOTES = `"'`;

/** Returns the text with everything but comments blanked; positions and line breaks stay. */
export function keepComments(text: string, language: Language): string {
  const output: string[] = [];
  let at = 0;
  let significant = "";
  while (at < text.length) {
    const end = tokenEnd(text, at, language, significant);
    const token = text.slice(at, end.at);
    output.push(end.comment ? token : token.replace(/[^\n]/g, " "));
    if (!end.comment && token.trim() !== "") significant = lastWord(significant, token);
    at = end.at;
  }
  return output.join("");
}

interface TokenEnd {
  at: number;
  comment: boolean;
}

function tokenEnd(text: string, at: number, language: Language, before: string): TokenEnd {
  const code = (end: number): TokenEnd => ({ at: end, comment: false });
  const two = text.slice(at, at + 2);
  const mark = text[at] as string;
  if (two === "//") return { at: lineEnd(text, at), comment: true };
  if (two === "/*" && language !== "zig") {
    const end = text.indexOf("*/", at + 2);
    return { at: end < 0 ? text.length : end + 2, comment: true };
  }
  // A raw line of Zig: quotes and slashes in it mean nothing.
  if (two === "\\\\" && language === "zig") return code(lineEnd(text, at));
  if (LINE_QUOTES.includes(mark)) return code(quoteEnd(text, at, mark, true));
  if (mark === "`" && language === "typescript") return code(quoteEnd(text, at, mark, false));
  if (mark === "/" && language === "typescript" && startsPattern(before)) {
    return code(patternEnd(text, at));
  }
  return code(at + 1);
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

function quoteEnd(text: string, at: number, quote: string, inLine: boolean): number {
  for (let index = at + 1; index < text.length; index += 1) {
    const character = text[index];
    if (character === "\\") index += 1;
    else if (character === quote) return index + 1;
    else if (character === "\n" && inLine) return index;
  }
  return text.length;
}

/** The end of a regular expression, in which `[/]` and `\/` do not end it. */
function patternEnd(text: string, at: number): number {
  let inClass = false;
  for (let index = at + 1; index < text.length; index += 1) {
    const character = text[index];
    if (character === "\\") index += 1;
    else if (character === "\n") return index;
    else if (character === "[") inClass = true;
    else if (character === "]") inClass = false;
    else if (character === "/" && !inClass) return index + 1;
  }
  return text.length;
}

/** A slash after a value divides; after an operator, a bracket or `return` it opens a pattern. */
function startsPattern(before: string): boolean {
  return before === "" || /(^|\W)(return|case|typeof|in|of)$/.test(before) ||
    /[(,=:[!&|?{};+*<>~^%-]$/.test(before);
}

function lastWord(before: string, token: string): string {
  return (before + token).slice(-12);
}
