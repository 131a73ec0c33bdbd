/**
 * Serves the package and the scenarios to a browser, as a user's server would.
 *
 * `/npm/` is the package, `/echo/module.html` a page that plays `echo` with modules.
 *
 * @module
 */
import type { PackageFile } from "../../tools/build_package.ts";
import { ISOLATION } from "../../tools/chromium.ts";
import { compileForBrowser, type Form, globalUrls, type Part } from "./scenarios.ts";

/** The scenario whose page comes without. */
const NOT_ISOLATED = "not_isolated";
const PATH = /^\/(\w+)\/(?:(main|worker|processor)\.)?(module|script)\.(html|js)$/;

/** A running server. */
export interface Pages {
  /** The address of a scenario's page. */
  urlOf(name: string, form: Form): string;
  close(): Promise<void>;
}

/** Serves on a free port of this machine alone. */
export function servePages(files: PackageFile[]): Pages {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async ({ url }) => {
      const { pathname } = new URL(url);
      const answer = await answerTo(pathname, files);
      const headers = new Headers({ "content-type": answer.type });
      for (const [name, value] of Object.entries(ISOLATION)) {
        if (!pathname.startsWith(`/${NOT_ISOLATED}/`)) headers.set(name, value);
      }
      return new Response(answer.text, { status: answer.status, headers });
    },
  );
  return {
    urlOf: (name, form) => `http://127.0.0.1:${server.addr.port}/${name}/${form}.html`,
    close: () => server.shutdown(),
  };
}

/** What stands at a path. */
interface Answer {
  status: number;
  type: string;
  text: string;
}

async function answerTo(path: string, files: PackageFile[]): Promise<Answer> {
  const found = files.find((file) => path === `/npm/${file.path}`);
  if (found !== undefined) return script(found.text);
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
