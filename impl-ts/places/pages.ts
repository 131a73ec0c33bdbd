/**
 * Serves the package, the scenarios and the guide's programs to a browser, as a user's server
 * would.
 *
 * `/npm/` is the package, `/echo/module.html` a page that plays `echo` with modules, and
 * `/guide/quick_start_1/main.html` one that runs a program of the guide. The global `outcome` of a
 * page is a promise of what it says at its end.
 *
 * @module
 */
import type { PackageFile } from "../../tools/build_package.ts";
import { ISOLATION } from "../../tools/chromium.ts";
import type { Program } from "./guide.ts";
import { compileForBrowser, compileProgram, type Form } from "./scenarios.ts";
import { globalUrls, type Part } from "./scenarios.ts";

/** The scenario, and the programs of the guide, whose pages come without; and a worker's script. */
const NOT_ISOLATED = /^\/(?:(?:guide\/)?not_isolated|bare_worker\/worker)/;
const PATH = /^\/(\w+)\/(?:(main|worker|alone|processor)\.)?(module|script)\.(html|js)$/;
const GUIDE_PATH = /^\/guide\/(\w+)\/(\w+)\.(html|ts)$/;

/** A running server. */
export interface Pages {
  /** The address of a scenario's page. */
  urlOf(name: string, form: Form): string;
  /** The address of the page of a program of the guide. */
  guideUrlOf(program: Program): string;
  close(): Promise<void>;
}

/** Serves on a free port of this machine alone. */
export function servePages(files: PackageFile[], programs: Program[] = []): Pages {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async ({ url }) => {
      const { pathname } = new URL(url);
      const answer = await answerTo(pathname, files, programs);
      const headers = new Headers({ "content-type": answer.type });
      for (const [name, value] of Object.entries(ISOLATION)) {
        if (!NOT_ISOLATED.test(pathname)) headers.set(name, value);
      }
      return new Response(answer.text, { status: answer.status, headers });
    },
  );
  const root = `http://127.0.0.1:${server.addr.port}`;
  return {
    urlOf: (name, form) => `${root}/${name}/${form}.html`,
    guideUrlOf: ({ name }) => `${root}/guide/${name}/main.html`,
    close: () => server.shutdown(),
  };
}

/** What stands at a path. */
interface Answer {
  status: number;
  type: string;
  text: string;
}

async function answerTo(
  path: string,
  files: PackageFile[],
  programs: Program[],
): Promise<Answer> {
  const found = files.find((file) => path === `/npm/${file.path}`);
  if (found !== undefined) return script(found.text);
  const [, title, file, type] = GUIDE_PATH.exec(path) ?? [];
  const program = programs.find((each) => each.name === title);
  if (program !== undefined) {
    if (type === "ts") return script(await compileProgram(program.files[`${file}.ts`]!));
    return { status: 200, type: "text/html", text: guidePage(program) };
  }
  const [, name, part, form, kind] = PATH.exec(path) ?? [];
  if (name === undefined) return { status: 404, type: "text/plain", text: "nothing is here" };
  if (kind === "html") return { status: 200, type: "text/html", text: page(form as Form) };
  return script(await compileForBrowser(name, part as Part, form as Form));
}

function script(text: string): Answer {
  return { status: 200, type: "text/javascript", text };
}

function page(form: Form): string {
  const scripts = form === "module"
    ? ['<script type="module" src="main.module.js">']
    : [...globalUrls(), "main.script.js"].map((url) => `<script src="${url}">`);
  return `<!doctype html><meta charset="utf-8">${scripts.join("</script>")}</script>`;
}

/** A page whose outcome is what the program prints, as soon as it is as long as it must be. */
function guidePage({ output }: Program): string {
  const listen = `globalThis.outcome = new Promise((resolve) => {
    let said = "";
    console.log = (...words) => {
      said += words.join(" ") + "\\n";
      if (said.length >= ${output.length}) resolve(said);
    };
  });`;
  return `<!doctype html><meta charset="utf-8"><script>${listen}</script>` +
    '<script type="module" src="main.ts"></script>';
}
