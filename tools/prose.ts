/**
 * Words that make a reader guess, and what to say in their place. They are looked for in comments
 * of TypeScript and Zig, and in Markdown; code, and what stands between quotes, is no prose.
 *
 * @module
 */
import { keepComments } from "./comments.ts";
import type { TextFile } from "./files.ts";

/** A pattern, which also finds words with a line break between them, and what to say instead. */
interface WordRule {
  pattern: RegExp;
  advice: string;
}

const RULES: readonly WordRule[] = [
  {
    // Allowed: to leave something behind, to fall or lag behind, and a number of bytes.
    pattern: new RegExp(
      "(?<!" + [
        /\b(?:leav\w+|left)\b[^.;:]{0,16}\s/,
        /\b(?:fall\w*|fell|lag\w*)\s(?:far\s)?/,
        /\d\sbytes?\s/,
        /[\w.-]/, // a part of a name
      ].map(({ source }) => source).join("|") + ")behind\\b",
      "gi",
    ),
    advice: 'say "after"; of a cause, say what it does',
  },
  {
    // Allowed: "not for this but for that", "but for which" and the like.
    pattern: /(?<!\bnot\b[^.;:]{0,80})\bbut *\n? *for\b(?! (?:instance|example|which|no)\b)/gi,
    advice: 'say "except"',
  },
  {
    pattern: /\b(?:of|among) *\n? *those *\n? *(?:that|who|which)\b/gi,
    advice: 'name them: "of the endpoints that"',
  },
  {
    pattern: /(?<!\bas\s)\bsuch(?=[.,;:)])/gi,
    advice: 'name the noun after "such"',
  },
];
/** A block of Markdown that names its language; clauses and pseudocode are in blocks without. */
const CODE_BLOCK = /^```\w[^]*?^```$/gm;
const QUOTED = /`[^`\n]*`|"[^"\n]*"/g;
/** What comments and quotations of Markdown begin their lines with. */
const LINE_START = /^\s*(?:\/\*\*?|\*\/?|\/\/[/!]?|>)/gm;

/** Which words of a file make its reader guess. */
export function proseProblems({ path, text }: TextFile): string[] {
  const prose = proseOf(path, text).replace(QUOTED, toBlank).replace(LINE_START, toBlank);
  return RULES.flatMap(({ pattern, advice }) =>
    [...prose.matchAll(pattern)].map(({ 0: words, index }) => {
      const line = text.slice(0, index).split("\n").length;
      return `${path}:${line}: ${words.replace(/\s+/g, " ")}: ${advice}`;
    })
  );
}

/** The text with everything blanked that is no prose; positions and line breaks stay. */
function proseOf(path: string, text: string): string {
  if (path.endsWith(".md")) return text.replace(CODE_BLOCK, toBlank);
  if (/\.[jt]s$/.test(path)) return keepComments(text, "typescript");
  return path.endsWith(".zig") ? keepComments(text, "zig") : "";
}

function toBlank(text: string): string {
  return text.replace(/[^\n]/g, " ");
}
