/**
 * The worker of the scenario that is named in its own address, in Deno.
 *
 * @module
 */
import type { WorkerPart } from "./stage.ts";
import { playWorker } from "./web_stage.ts";

const name = new URL(import.meta.url).search.slice(1);
playWorker(load());

async function load(): Promise<WorkerPart<unknown>> {
  const { default: part } = await import(`./${name}/worker.ts`);
  return part;
}
