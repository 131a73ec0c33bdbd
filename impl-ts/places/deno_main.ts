/**
 * Plays the scenario named on the command line in Deno, from the sources.
 *
 * @module
 */
import { playMain } from "./web_stage.ts";

const name = Deno.args[0];
const { default: main } = await import(`./${name}/main.ts`);
const worker = new URL(`./deno_worker.ts?${name}`, import.meta.url);
const alone = new URL(`./${name}/alone.ts`, import.meta.url);
const outcome = await playMain(main, { worker, alone, options: { type: "module" } });
console.log(outcome);
// A worker that was terminated while it blocked would keep the process from ending.
Deno.exit(outcome === "played" ? 0 : 1);
