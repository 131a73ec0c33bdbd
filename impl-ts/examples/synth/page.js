/**
 * The page: starts the two threads, shows what comes of it, and hears nothing itself.
 *
 * @module
 */
import { SharedProperties } from "millrace/property";
import { BLOCK, COUNTS, PANEL, PLAYED, UNDERRUNS } from "./shared.js";

const element = (id) => document.getElementById(id);
const canvas = element("wave");
const number = new Intl.NumberFormat("en");

/** What plays, or undefined. */
let playing;

/** Starts the worker and the audio thread; the ring between them is full when it begins. */
async function start() {
  const context = new AudioContext({ latencyHint: "interactive" });
  await context.audioWorklet.addModule("speaker.js");
  const panel = SharedProperties.create({ properties: PANEL });
  steer(panel);
  const worker = new Worker("synth.js", { type: "module" });
  const sound = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage({ panel: panel.memory, rate: context.sampleRate });
  });
  const node = new AudioWorkletNode(context, "speaker", {
    numberOfInputs: 0,
    outputChannelCount: [1],
    processorOptions: { sound, panel: panel.memory },
  });
  node.onprocessorerror = ({ message }) => tell(`The audio thread failed. ${message ?? ""}`);
  const analyser = new AnalyserNode(context, { fftSize: 2048 });
  node.connect(analyser).connect(context.destination);
  await context.resume();
  const counts = new Float64Array(COUNTS);
  const made = new Float64Array(1);
  const wave = new Float32Array(analyser.fftSize);
  playing = { context, worker, panel, analyser, counts, made, wave };
  requestAnimationFrame(show);
}

/** Ends both. */
async function stop() {
  const { context, worker, panel } = playing;
  playing = undefined;
  await context.close();
  worker.terminate();
  panel.close();
}

/** Sets what is wished for; who needs it gets it, whenever that is. */
function steer(panel) {
  const valueOf = (id) => element(id).valueAsNumber;
  panel?.set("tune", Float32Array.of(valueOf("tempo"), valueOf("brightness") / 100));
  panel?.set("volume", Float32Array.of(valueOf("volume") / 100));
}

/** One picture. */
function show() {
  if (playing === undefined) return;
  const { context, panel, analyser, counts, made, wave } = playing;
  panel.getInto("counts", counts);
  panel.getInto("made", made);
  const ms = (blocks) => blocks * BLOCK * 1000 / context.sampleRate;
  element("underruns").textContent = number.format(counts[UNDERRUNS]);
  element("blocks").textContent = number.format(counts[PLAYED]);
  element("ahead").textContent = Math.max(0, ms(made[0] - counts[PLAYED])).toFixed(0);
  element("time").textContent = clock(ms(counts[PLAYED] + counts[UNDERRUNS]) / 1000);
  element("health").className = counts[UNDERRUNS] === 0 ? "figure good" : "figure bad";
  analyser.getFloatTimeDomainData(wave);
  draw(wave);
  requestAnimationFrame(show);
}

function draw(wave) {
  const { width, height } = canvas;
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, width, height);
  pen.strokeStyle = getComputedStyle(canvas).color;
  pen.lineWidth = 2 * width / canvas.clientWidth;
  pen.lineJoin = "round";
  // From a rise through zero on, so that the picture stands still.
  let from = 0;
  while (from < wave.length / 2 && !(wave[from] <= 0 && wave[from + 1] > 0)) from++;
  pen.beginPath();
  const count = wave.length / 2;
  for (let i = 0; i < count; i++) {
    pen.lineTo(i * width / count, height / 2 - wave[from + i] * height * 0.85);
  }
  pen.stroke();
  const power = wave.reduce((sum, each) => sum + each * each, 0) / wave.length;
  const decibels = 10 * Math.log10(power + 1e-9);
  element("level").style.width = `${Math.max(0, Math.min(100, (decibels + 60) / 0.6))}%`;
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function tell(text) {
  element("note").textContent = text;
}

async function toggle() {
  tell("");
  element("play").disabled = true;
  try {
    if (playing === undefined) await start();
    else await stop();
  } catch (error) {
    tell(`It does not play: ${error.message}`);
  }
  const isPlaying = playing !== undefined;
  element("play").textContent = isPlaying ? "Stop" : "Play";
  element("play").disabled = false;
  element("stall").disabled = !isPlaying;
  document.body.classList.toggle("playing", isPlaying);
}

element("play").onclick = toggle;
element("stall").onclick = () => playing?.panel.set("stalls", 200);
for (const id of ["tempo", "brightness", "volume"]) {
  element(id).oninput = () => steer(playing?.panel);
}

/** For who drives the page from outside: what was played so far, and how loud it is now. */
globalThis.loudness = () => Math.max(0, ...playing?.wave.map(Math.abs) ?? []);
globalThis.counts = () => ({
  blocks: playing?.counts[PLAYED] ?? 0,
  underruns: playing?.counts[UNDERRUNS] ?? 0,
  seconds: (playing?.context.currentTime) ?? 0,
});
