/**
 * Deno.
 *
 * @module
 */
import process from "node:process";
import type { Place } from "./place.ts";
import { startWebPlayer } from "./web_place.ts";

/** Makes the place. `sabMessagePort` is the folder of that library. */
export function denoPlace(sabMessagePort: string | undefined): Place {
  return {
    name: "deno",
    version: Deno.version.deno,
    sabMessagePort,
    startPlayer: () => startWebPlayer(new URL("./deno_worker.ts", import.meta.url)),
    moduleUrl: (name) =>
      name === "sab-message-port"
        ? sabMessagePortUrl(sabMessagePort as string)
        : new URL(`./${name}.ts`, import.meta.url).href,
    readWasm: (name) => Deno.readFile(new URL(`../../zig-out/bin/${name}.wasm`, import.meta.url)),
    heapUsed: () => Deno.memoryUsage().heapUsed,
    processorTime: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
  };
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
