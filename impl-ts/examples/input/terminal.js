/**
 * Python in a worker, for a page: `input()` blocks there until what `ask` returns has come.
 *
 * @module
 */
import { Port } from "millrace";
import { serve } from "millrace/call";
import { supervise } from "millrace/supervise";

const SIGINT = 2;

/** `page` has `show(text)`, `ask()`, `ready(version)`, `done()` and `failed(cause)`. */
export function startPython(page) {
  const interrupts = new Uint8Array(new SharedArrayBuffer(1)); // Python takes it back to 0
  const port = Port.create();
  const worker = new Worker("python.js", { type: "module" });
  supervise(worker, port).failed.then(({ cause }) => page.failed(cause));
  worker.postMessage(port.handoff({ interrupts }));
  serve(port, { ask: page.ask, ready: page.ready, done: page.done });
  port.onmessage = ({ data }) => page.show(data);
  return {
    run(program) {
      interrupts[0] = 0;
      port.postMessage(program);
    },
    interrupt: () => void (interrupts[0] = SIGINT),
  };
}
