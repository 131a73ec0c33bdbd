/**
 * What some programs of the guide need beside them: somebody who answers, or a service.
 *
 * @module
 */
import type { Page } from "puppeteer-core";
import { bundleText } from "../../tools/build_scripts.ts";
import { examplesConfig } from "../src/testing/examples_fixture.ts";
import { freePort, type Program, readAllPrograms, writePrograms } from "./guide.ts";

const PACKAGE = await Deno.realPath(`${import.meta.dirname}/..`);
/** The line by which the service of the guide's program starts its client. */
const STARTS_CLIENT = /^await new Deno\.Command.*$/m;

/** Answers what the guide's program asks the user, of whom the number is. Returns how often. */
export async function answerQuestions(page: Page, number: number): Promise<number> {
  let count = 0;
  for (let least = 1, most = 100; least < most; count++) {
    const question = await page.waitForSelector("dialog[open] label");
    const text = await question!.evaluate(({ textContent }) => textContent!);
    const than = Number(/^Is it larger than (\d+)\?$/.exec(text)?.[1]);
    if (number > than) least = than + 1;
    else most = than;
    await page.type("dialog[open] input", number > than ? "yes" : "no");
    await page.keyboard.press("Enter");
    const script = `document.querySelector("label")?.textContent !== ${JSON.stringify(text)}`;
    await page.waitForFunction(script);
  }
  return count;
}

/** What a bundler makes of a program and of what it takes of the package: one file. */
export async function bundleProgram({ name, files, output }: Program): Promise<Program> {
  const { imports } = JSON.parse(await examplesConfig());
  const alias = Object.fromEntries(
    Object.entries<string>(imports).map(([from, to]) => [from, new URL(to).pathname]),
  );
  const stdin = { contents: files["main.ts"]!, loader: "ts" as const };
  const text = await bundleText({ stdin, format: "esm", alias, external: ["node:*"] });
  return { name, files: { "main.ts": text }, output };
}

/** A running service of the guide, and the program that is its client. */
export interface Service extends AsyncDisposable {
  /** Its one file is `main.ts`, with the place of the service in it. */
  readonly client: Program;
}

/**
 * Starts the service of the guide's program for any transport, without a client of its own. The
 * variant is the heading of its section; `change` makes of its client what another place needs.
 */
export async function startService(
  variant: string,
  nameOfClient: string,
  change = (text: string) => text,
): Promise<Service> {
  const programs = await readAllPrograms(PACKAGE, ["guide/transports.md"]);
  const program = programs.find(({ name }) => name === `${variant}_1`)!;
  const waits = "console.log(place); await new Promise(() => {});";
  const service = program.files["main.ts"]!.replaceAll("8000", freePort());
  const folder = await Deno.makeTempDir({ prefix: "millrace-service-" });
  const files = { "main.ts": service.replace(STARTS_CLIENT, waits) };
  await writePrograms(folder, [{ ...program, files }]);
  await Deno.writeTextFile(`${folder}/deno.json`, await examplesConfig());
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", `${program.name}/main.ts`],
    cwd: folder,
    env: { TMPDIR: folder },
    stdout: "piped",
  }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const place = JSON.stringify((await output.read()).value?.trim());
  const text = program.files["client.ts"]!.replace("Deno.args[0]!", place);
  return {
    client: { name: nameOfClient, files: { "main.ts": change(text) }, output: program.output },
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await output.cancel();
      await process.status;
      await Deno.remove(folder, { recursive: true });
    },
  };
}
