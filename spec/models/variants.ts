/**
 * Puts variants of a model, which differ in a few lines, into one: the checker that Spin makes of a
 * model is ten thousand lines of C, and a few hundred of them are the model's. So one checker for
 * all variants is compiled in little more time than one for a single one.
 *
 * The united model holds every process of every variant, each text once. Which variant is searched
 * is decided when `init` starts the processes, by the environment; nothing else is added, so that
 * the states are those of the variant alone, except the steps of that choice.
 *
 * @module
 */

/** The variable of the environment that says which variant is searched, by its index. */
export const CHOICE = "MILLRACE_VARIANT";

/** A model that stands for several. */
export interface Union {
  text: string;
  /** Indices of the variants that it holds. */
  variants: number[];
}

/** An inline or a process. */
interface Part {
  kind: string;
  name: string;
  /** What stands in its parentheses, and in its braces. */
  params: string;
  body: string;
}

/** A model, taken apart. */
interface Parts {
  declarations: string;
  parts: Map<string, Part>;
  init: string;
}

/** What a variant comes to when its parts have names of their own. */
interface Resolved {
  declarations: string;
  init: string;
  /** The names that the parts of the variant have in the united model. */
  names: Map<string, string>;
}

/**
 * Unites preprocessed models. Those that do not declare the same, or begin in another way, cannot
 * be one; so there may be several.
 */
export function unite(texts: readonly string[]): Union[] {
  const shared = new Shared();
  const resolved = texts.map((text) => shared.resolve(takeApart(text)));
  const groups = Map.groupBy(resolved.keys(), (index) => {
    const { declarations, init } = resolved[index]!;
    return `${declarations}\n${init}`;
  });
  return [...groups.values()].map((variants) => ({
    text: write(shared, resolved, variants),
    variants,
  }));
}

/** The parts of all variants. Two are the same where their texts are, and those that they call. */
class Shared {
  /** By what tells them apart: the name and the text. */
  readonly #names: Map<string, string> = new Map();
  /** By the new name, in an order in which each stands after what it calls. */
  readonly texts: Map<string, string> = new Map();

  resolve({ declarations, parts, init }: Parts): Resolved {
    const names = new Map<string, string>();
    const rename = (text: string): string =>
      text.replace(/\b(\w+)(?=\s*\()/g, (name) => {
        const part = parts.get(name);
        return part?.kind === "inline" ? nameOf(part) : name;
      });
    const nameOf = (part: Part): string => {
      const { kind, name, params, body } = part;
      const known = names.get(name);
      if (known !== undefined) return known;
      const rest = `(${params}) {${rename(body)}}`;
      const key = `${name}${rest}`;
      const own = this.#names.get(key) ?? `${name}_${this.#names.size}`;
      if (!this.#names.has(key)) {
        this.#names.set(key, own);
        this.texts.set(own, `${kind} ${own}${rest}`);
      }
      names.set(name, own);
      return own;
    };
    for (const part of parts.values()) nameOf(part);
    return { declarations, init: rename(init), names };
  }
}

function write(shared: Shared, resolved: Resolved[], variants: readonly number[]): string {
  const { declarations, init } = resolved[variants[0]!]!;
  const used = new Set(variants.flatMap((index) => [...resolved[index]!.names.values()]));
  return [
    // Before `main`: what an expression of C in a model calls might change the state.
    `c_decl { static int variant; }`,
    `c_code {`,
    `__attribute__((constructor)) static void choose(void)`,
    `{ variant = atoi(getenv("${CHOICE}")); }`,
    `}`,
    declarations,
    ...[...shared.texts].filter(([name]) => used.has(name)).map(([, text]) => text),
    `init {${choose(init, resolved, variants)}}`,
    "",
  ].join("\n");
}

/** Starts, in place of each process, that of the variant that is searched. */
function choose(init: string, resolved: Resolved[], variants: readonly number[]): string {
  return init.replace(/\brun\s+(\w+)\s*(\((?:[^()]|\([^()]*\))*\))/g, (_, name, given) => {
    const byName = Map.groupBy(variants, (index) => resolved[index]!.names.get(name)!);
    const ways = [...byName].map(([own, indices]) => {
      const chosen = indices.map((index) => `variant == ${index}`).join(" || ");
      return `:: c_expr { ${chosen} } -> run ${own}${given}`;
    });
    return `if ${ways.join(" ")} fi`;
  });
}

function takeApart(text: string): Parts {
  const head = /\b(?:(inline|proctype)\s+(\w+)\s*\(([^)]*)\)|init)\s*\{/g;
  const parts = new Map<string, Part>();
  let [declarations, init, at] = ["", "", 0];
  for (let match = head.exec(text); match !== null; match = head.exec(text)) {
    declarations += text.slice(at, match.index);
    const end = endOfBlock(text, head.lastIndex);
    const body = text.slice(head.lastIndex, end);
    const [, kind, name, params] = match;
    if (name === undefined) init = body;
    else parts.set(name, { kind: kind!, name, params: params!, body });
    head.lastIndex = at = end + 1;
  }
  return { declarations: declarations + text.slice(at), parts, init };
}

/** Where the brace stands that closes a block. */
function endOfBlock(text: string, begin: number): number {
  for (let at = begin, depth = 1; at < text.length; at++) {
    if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  throw new Error("Cannot take a model apart: a block has no end");
}
