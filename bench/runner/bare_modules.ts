/**
 * The modules of the floors for `start`: a few kilobytes that do the least there is, and behind
 * them code that is never called, up to the size that the goals have for a library of that kind. So
 * they show what the import of so much takes, whatever it does.
 *
 * The code behind is of classes as a minifier leaves them: private fields, and short methods that
 * look, loop and call each other. An engine has to read all of it and to make the classes.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const SCRIPT = fileURLToPath(new URL("../script/", import.meta.url));
/** Methods of a class, and its private fields. */
const METHODS = 24;
const FIELDS = 8;
const VERBS = ["read", "write", "take", "start", "close", "wait"];
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** What the modules are made of, and how large the goals have a library of their kind. */
export const MODULES = [
  { peer: "floor-text", name: "Port", size: 40_000 },
  { peer: "floor-turn", name: "SABMessagePort", size: 45_000 },
];

/** Writes the modules into a folder. */
export async function writeBareModules(folder: string): Promise<void> {
  for (const { peer, name, size } of MODULES) {
    await Deno.writeTextFile(`${folder}/${peer}.js`, await bareModule(name, size));
  }
}

/** Bundles a class of `script/bare.ts` and fills the module up to so many bytes. */
async function bareModule(name: string, size: number): Promise<string> {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: `export { ${name} } from "./bare.ts";`, resolveDir: SCRIPT },
    write: false,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    target: "es2023",
  });
  const { text } = outputFiles[0]!;
  return text + neverCalled(size - text.length);
}

/** Code of so many bytes, the last of them spaces. */
export function neverCalled(size: number): string {
  const random = randomOf(1);
  let text = "";
  for (let index = 0;; index++) {
    const next = classText(`Unused${index}`, random);
    if (text.length + next.length > size) break;
    text += next;
  }
  // What is left is shorter than a class.
  for (let index = 0;; index++) {
    const next = `export const unused${index}=function(e,t){${bodyText(random)}};\n`
      .replaceAll("this.#", "e.");
    if (text.length + next.length > size) break;
    text += next;
  }
  return text + " ".repeat(size - text.length);
}

function classText(name: string, random: (below: number) => number): string {
  const fields = Array.from({ length: FIELDS }, (_, index) => {
    return `#${LETTERS[index]}${["", "=0", "=!1", "=[]"][random(4)]};`;
  });
  const methods = Array.from({ length: METHODS }, (_, index) => {
    const head = ["", "", "", "static ", "async "][random(5)];
    // A class has no private fields of its own.
    const body = head === "static "
      ? bodyText(random).replaceAll("this.#", "e.")
      : bodyText(random);
    return `${head}${nameOf(index)}(e,t){${body}}`;
  });
  const set = `constructor(e,t){this.#a=e,this.#b=t,this.#c=new Map}`;
  return `export class ${name}{${fields.join("")}${set}${methods.join("")}}\n`;
}

function bodyText(random: (below: number) => number): string {
  const count = 1 + random(3);
  let text = "";
  for (let index = 0; index < count; index++) text += statement(random, index);
  return `${text}return this.#${LETTERS[random(FIELDS)]}`;
}

function statement(random: (below: number) => number, index: number): string {
  const field = () => `this.#${LETTERS[random(FIELDS)]}`;
  const call = () => `${field()}.${nameOf(random(METHODS))}`;
  const own = `n${index}`;
  switch (random(6)) {
    case 0:
      return `if(e===void 0||${call()}(t)>${random(99)})return ${field()};`;
    case 1:
      return `let ${own}=${call()}(e,t);if(${own}!==t&&!${field()})throw new TypeError(` +
        `"Cannot ${nameOf(random(METHODS))}: it has ${nameOf(random(METHODS))}");`;
    case 2:
      return `for(let ${own}=0;${own}<t;${own}++)${field()}[${own}&7]^=e[${own}]>>>${random(9)};`;
    case 3:
      return `${field()}??=new Map([[e,{${nameOf(random(METHODS))}:t,size:${random(999)}}]]);`;
    case 4:
      return `let{length:${own}}=e,o${index}=()=>${call()}(${own},t);${field()}=o${index};`;
  }
  return `${field()}=e===t?${call()}(e):${random(99)}+${field()};`;
}

function nameOf(index: number): string {
  return `${VERBS[index % VERBS.length]}${LETTERS[index % LETTERS.length]}`;
}

/** Numbers that are the same each time. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}
