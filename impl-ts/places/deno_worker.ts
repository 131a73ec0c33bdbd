/**
 * The worker of the scenario that is named in its own address, in Deno.
 *
 * @module
 */
import { playWorker } from "./web_stage.ts";

const name = new URL(import.meta.url).search.slice(1);
const { default: part } = await import(`./${name}/worker.ts`);
playWorker(part);
