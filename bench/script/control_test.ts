import { assert } from "@std/assert";
import { Control, controlMemory } from "./control.ts";

const GAMES = 3;

Deno.test("ping and pong play several games in one memory, and both end", async () => {
  const source = `
    import { Control } from ${JSON.stringify(new URL("control.ts", import.meta.url).href)};
    globalThis.onmessage = ({ data }) => {
      const control = new Control(data);
      for (let game = 0; game < ${GAMES}; game++) control.pong();
      globalThis.postMessage("done");
    };
    globalThis.postMessage("ready");`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/typescript" }));
  const worker = new Worker(url, { type: "module" });
  const hear = () => new Promise((resolve) => worker.onmessage = resolve);
  await hear();
  const memory = controlMemory();
  const control = new Control(memory);
  worker.postMessage(memory);
  for (let game = 0; game < GAMES; game++) {
    // On a busy machine, nothing is measured.
    assert((control.ping(0.2) ?? 1) > 0);
  }
  await hear();
  worker.terminate();
  URL.revokeObjectURL(url);
});
