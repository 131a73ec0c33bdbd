/**
 * Marks the functions that every program calls until its first message is there. V8 compiles these
 * with their module, where it otherwise reads each twice, and compiles it when it is called first,
 * which takes 10 to 20 µs of each. And what was compiled with its module is in the code cache of
 * Deno, which has nothing of what was compiled later (measured: V8 13, 15).
 *
 * No list names them: the module is run once, with a note in each function.
 *
 * @module
 */

/** A function of a module as esbuild prints it, not minified: all of its lines, and its name. */
const FUNCTION = /^function ([\w$]+)(\([^\n]*\) \{\n(?:(?:[ \t].*)?\n)*?\})$/gm;

/** What a program does first, with what a module exports. */
export type First = (module: Record<string, unknown>) => void | Promise<void>;

/** The names of the functions that run, and did not while the module was loaded. */
export async function readEarly(text: string, first: First): Promise<ReadonlySet<string>> {
  const noted = text.replaceAll(FUNCTION, (_all, name: string, rest: string) => {
    return `function ${name}${rest.replace("{\n", `{ $note(${JSON.stringify(name)});\n`)}`;
  });
  const note = "const $ran = new Set(); const $note = (name) => $ran.add(name);";
  const blob = new Blob([`${note}\n${noted}\nexport { $ran };`], { type: "text/javascript" });
  const url = URL.createObjectURL(blob);
  try {
    const module = await import(url) as Record<string, unknown> & { $ran: Set<string> };
    // What a constant is made by may be called before its own line is reached.
    const loaded = new Set(module.$ran);
    await first(module);
    return module.$ran.difference(loaded);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Puts these functions in brackets, which V8 takes as a sign; lines stay where they are. */
export function markEarly(text: string, names: ReadonlySet<string>): string {
  return text.replaceAll(
    FUNCTION,
    (all, name: string, rest: string) => names.has(name) ? `var ${name} = (function${rest});` : all,
  );
}

/** A port: made, handed over, and asked by a thread that waits in vain before. */
function firstOfPort({ Port }: Record<string, unknown>): void {
  const here = (Port as AnyPort).create();
  const there = (Port as AnyPort).from(here.handoff());
  there.read({ timeout: 1 });
  here.write({ id: 1 });
  there.write(there.read());
  here.read();
  here.postMessage({ id: 2 });
  here.read({ timeout: 1 }); // which sends what was posted
  there.read();
}

/** The same with the drop-in. */
async function firstOfDropIn({ SABMessagePort }: Record<string, unknown>): Promise<void> {
  const Sab = SABMessagePort as { new (): AnyPort; from(init: unknown): AnyPort };
  const here = new Sab();
  const there = Sab.from(here.postInit()[0]);
  await here.postMessage({ id: 1 });
  await there.postMessage(there.read());
  here.read();
}

/** What programs do first with an entry, by its name. */
export const FIRST: Readonly<Record<string, First>> = {
  "millrace": firstOfPort,
  "sab-message-port": firstOfDropIn,
};

/** What is used of the package here, whose names are known only when it is built. */
interface AnyPort {
  create(): AnyPort;
  from(handoff: unknown): AnyPort;
  handoff(): unknown;
  read(options?: { timeout: number }): unknown;
  write(value: unknown): void;
  postMessage(value: unknown): void | Promise<void>;
  postInit(): unknown[];
}
