/**
 * Chromium: a page that is cross-origin isolated, and its workers.
 *
 * @module
 */
import { type Place, startWebPlayer, startWebStarter } from "./place.ts";

/** Makes the place; everything lies in the folder of the page. */
export function pagePlace(): Place {
  const here = globalThis.location.href;
  const sabMessagePort = "/sab-message-port/";
  return {
    name: "chromium",
    version: /Chrome\/([\d.]+)/.exec(navigator.userAgent)?.[1] ?? "",
    sabMessagePort: new URL(here).searchParams.has("sab") ? sabMessagePort : undefined,
    startPlayer: () => startWebPlayer(new URL(`./page_worker.mjs${location.search}`, here)),
    startStarter: () => startWebStarter(new URL("./start_worker.mjs", here)),
    packageUrl: (file) => new URL(`./package/${file}`, here).href,
    moduleUrl: (name) =>
      name === "sab-message-port"
        ? new URL(`${sabMessagePort}${new URL(here).searchParams.get("sab")}`, here).href
        : new URL(`./${name}.mjs`, here).href,
    readWasm: async (name) => new Uint8Array(await (await fetch(`./${name}.wasm`)).arrayBuffer()),
    heapUsed: () => undefined,
    processorTime: () => undefined,
  };
}
