/**
 * The page: answers what Python asks, and interrupts it. All that is about Python is in
 * `terminal.js` and `python.js`.
 *
 * @module
 */
import { startPython } from "./terminal.js";

const element = (id) => document.getElementById(id);
const [program, output, line] = ["program", "output", "line"].map(element);
/** Ends the wait of whoever asks. */
let answer;

const python = startPython({
  show,
  failed: (cause) => show(`Python did not start: ${cause}\n`),
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
});

function show(text) {
  output.append(text);
  output.scrollTop = output.scrollHeight;
}

element("run").onclick = () => {
  output.replaceChildren();
  element("run").disabled = true;
  element("stop").disabled = false;
  element("state").textContent = "It runs.";
  python.run(program.value);
};
element("stop").onclick = () => {
  python.interrupt();
  answer?.(""); // where it waits for an answer it cannot look
};
element("answer").onsubmit = (event) => {
  event.preventDefault();
  show(`${line.value}\n`);
  answer?.(line.value);
};
