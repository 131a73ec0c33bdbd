/**
 * The page: answers what Python asks, and interrupts it.
 *
 * @module
 */
import { Port } from "millrace";
import { serve } from "millrace/call";
import { supervise } from "millrace/supervise";

const element = (id) => document.getElementById(id);
const [program, output, line] = ["program", "output", "line"].map(element);
/** Python looks at it now and then, and takes it back to 0. */
const interrupts = new Uint8Array(new SharedArrayBuffer(1));
const SIGINT = 2;
/** Ends the wait of whoever asks. */
let answer;

const api = {
  ready(version) {
    element("state").textContent = `Python ${version} is ready.`;
    element("run").disabled = false;
  },
  ask() {
    line.disabled = false;
    line.focus();
    return new Promise((resolve) => {
      answer = (text) => {
        line.disabled = true;
        line.value = "";
        answer = undefined;
        resolve(text);
      };
    });
  },
  done() {
    element("run").disabled = false;
    element("stop").disabled = true;
    element("state").textContent = "It has ended.";
  },
};

function show(text) {
  output.append(text);
  output.scrollTop = output.scrollHeight;
}

const port = Port.create();
const worker = new Worker("python.js", { type: "module" });
supervise(worker, port).failed.then(({ cause }) => show(`Python did not start: ${cause}\n`));
worker.postMessage(port.handoff({ interrupts }));
serve(port, api);
port.onmessage = ({ data }) => show(data);

element("run").onclick = () => {
  output.replaceChildren();
  interrupts[0] = 0;
  element("run").disabled = true;
  element("stop").disabled = false;
  element("state").textContent = "It runs.";
  port.postMessage(program.value);
};
element("stop").onclick = () => {
  interrupts[0] = SIGINT;
  answer?.(""); // where it waits for an answer it cannot look
};
element("answer").onsubmit = (event) => {
  event.preventDefault();
  show(`${line.value}\n`);
  answer?.(line.value);
};
