/**
 * Deno.
 *
 * @module
 */
import process from "node:process";
import { lateError, type Place, startWebPlayer, startWebStarter } from "./place.ts";
import type { StartOrder } from "./start_program.ts";

/** Makes the place. `sabMessagePort` is the folder of that library. */
export function denoPlace(sabMessagePort: string | undefined): Place {
  return {
    name: "deno",
    version: Deno.version.deno,
    sabMessagePort,
    startPlayer: () => startWebPlayer(new URL("./deno_worker.ts", import.meta.url)),
    startStarter: () => startWebStarter(new URL("./start_worker.ts", import.meta.url)),
    startProcess,
    packageUrl: (file) => new URL(file, `file://${Deno.env.get("MILLRACE_BENCH_PACKAGE")}/`).href,
    moduleUrl: (name) =>
      name === "sab-message-port"
        ? sabMessagePortUrl(sabMessagePort as string)
        : new URL(`./${name}.ts`, import.meta.url).href,
    readWasm: (name) => Deno.readFile(new URL(`../../zig-out/bin/${name}.wasm`, import.meta.url)),
    heapUsed: () => Deno.memoryUsage().heapUsed,
    measureSizes: async () => await (await import("../runner/bundles.ts")).measureSizes(),
    processorTime: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
  };
}

async function startProcess(order: StartOrder, ms: number): Promise<Record<string, number>> {
  const script = new URL("./start_main.ts", import.meta.url).href;
  const args = ["run", "-A", "--no-check", script, JSON.stringify(order)];
  const options = {
    args,
    stdin: "null",
    stderr: "piped",
    signal: AbortSignal.timeout(ms),
  } as const;
  const { code, success, stdout, stderr } = await new Deno.Command(Deno.execPath(), options)
    .output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (success) return JSON.parse(text(stdout));
  throw code === 143 ? lateError(order.what, ms) : new Error(`In ${order.what}: ${text(stderr)}`);
}

/** Where the library is in its folder, by what its `package.json` says. */
export function sabMessagePortUrl(folder: string): string {
  const base = new URL(`file://${folder}/`);
  const { exports, module, main } = JSON.parse(
    Deno.readTextFileSync(new URL("package.json", base)),
  );
  const entry = exports?.["."] ?? exports;
  const path = entry?.import ?? entry?.default ?? entry ?? module ?? main;
  return new URL(path?.default ?? path, base).href;
}
