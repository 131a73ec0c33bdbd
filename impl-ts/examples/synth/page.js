/**
 * The page: starts the two threads, shows what comes of it, and hears nothing itself.
 *
 * @module
 */
import { Port } from "millrace";
import { BLOCK, COUNTS, PLAYED, UNDERRUNS } from "./shared.js";

const element = (id) => document.getElementById(id);
const canvas = element("wave");
const number = new Intl.NumberFormat("en");

/** What plays, or undefined. */
let playing;

/** Starts the worker and the audio thread; the ring between them is full when it begins. */
async function start() {
  const context = new AudioContext({ latencyHint: "interactive" });
  await context.audioWorklet.addModule("speaker.js");
  const control = Port.create();
  const worker = new Worker("synth.js", { type: "module" });
  const sound = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(control.handoff({ rate: context.sampleRate }));
  });
  const meter = Port.create({ capacity: 1024 });
  const node = new AudioWorkletNode(context, "speaker", {
    numberOfInputs: 0,
    outputChannelCount: [1],
    processorOptions: { sound, meter: meter.handoff() },
  });
  node.onprocessorerror = ({ message }) => tell(`The audio thread failed. ${message ?? ""}`);
  const analyser = new AnalyserNode(context, { fftSize: 2048 });
  node.connect(analyser).connect(context.destination);
  await context.resume();
  const counts = new Float64Array(COUNTS);
  playing = { context, worker, control, meter, analyser, counts, made: 0 };
  playing.report = new Uint8Array(counts.buffer);
  playing.wave = new Float32Array(analyser.fftSize);
  steer({});
  requestAnimationFrame(show);
}

/** Ends both. */
async function stop() {
  const { context, worker, control, meter } = playing;
  playing = undefined;
  await context.close();
  worker.terminate();
  for (const port of [control, meter]) port.close();
}

/** Tells the synthesiser what is wished for. */
function steer(more) {
  const tempo = element("tempo").valueAsNumber;
  const brightness = element("brightness").valueAsNumber / 100;
  playing?.control.tryWrite({ tempo, brightness, ...more });
}

/** One picture. */
function show() {
  if (playing === undefined) return;
  const { context, control, meter, analyser, counts, report, wave } = playing;
  while (meter.tryReadInto(report) !== undefined); // the last one counts
  for (let made; (made = control.tryRead()) !== undefined;) playing.made = made;
  const ms = (blocks) => blocks * BLOCK * 1000 / context.sampleRate;
  element("underruns").textContent = number.format(counts[UNDERRUNS]);
  element("blocks").textContent = number.format(counts[PLAYED]);
  element("ahead").textContent = Math.max(0, ms(playing.made - counts[PLAYED])).toFixed(0);
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
  pen.lineWidth = 3;
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
element("stall").onclick = () => steer({ stall: 200 });
element("tempo").oninput = element("brightness").oninput = () => steer({});

/** For who drives the page from outside: what was played so far. */
globalThis.counts = () => ({
  blocks: playing?.counts[PLAYED] ?? 0,
  underruns: playing?.counts[UNDERRUNS] ?? 0,
  seconds: (playing?.context.currentTime) ?? 0,
});
