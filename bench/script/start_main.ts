/** A process of Deno or Node that has just started: its last argument is what to do. @module */
import process from "node:process";
import { runStart, type StartOrder } from "./start_program.ts";

const { times } = await runStart(JSON.parse(process.argv.at(-1) as string) as StartOrder);
process.stdout.write(`${JSON.stringify(times)}\n`, () => process.exit(0));
