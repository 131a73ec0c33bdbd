/**
 * The worker: computes sound as far ahead as the ring has room, and blocks where it has none.
 *
 * @module
 */
import { Port } from "millrace";
import { SharedProperties } from "millrace/property";
import { BLOCK, CAPACITY, SYNTH } from "./shared.js";

self.onmessage = ({ data }) => {
  const panel = SharedProperties.attach(data.panel, { endpoint: SYNTH });
  const [tune, stalls] = [panel.reader("tune"), panel.reader("stalls")];
  const sound = Port.create({ capacity: [CAPACITY, 256], codec: "bytes" });
  const synth = new Synth(data.rate);
  const samples = new Float32Array(BLOCK);
  const bytes = new Uint8Array(samples.buffer);
  const wish = new Float32Array(2);
  const made = new Float64Array(1);
  tune.getInto(wish);
  stalls.get();

  const next = () => {
    // A look at a version costs nothing to speak of, in the middle of a computation too.
    if (tune.version !== tune.seen) tune.getInto(wish);
    if (stalls.version !== stalls.seen) stall(stalls.get());
    synth.fill(samples, wish[0], wish[1]);
    made[0]++;
    panel.set("made", made);
  };

  // The ring is full before the audio thread gets its end.
  next();
  while (sound.tryWrite(bytes)) next();
  self.postMessage(sound.handoff());
  for (;; next()) sound.write(bytes);
};

/** What a synthesiser that is too slow would do. */
function stall(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Semitones above the key note, of four chords; and the order in which their notes are struck. */
const CHORDS = [
  "0 7 12 16 19 23",
  "-3 4 12 16 19 24",
  "-7 5 9 12 16 21",
  "-5 2 7 14 17 23",
].map((chord) => chord.split(" ").map(Number));
const STEPS = [0, 2, 3, 5, 4, 2, 1, 3];
const KEY_HZ = 110;

/** An arpeggio: two saws for each note, a low-pass filter that closes, and an echo. */
class Synth {
  #rate;
  #echo;
  #echoAt = 0;
  #tempo = 96;
  #brightness = 0.55;
  #step = -1;
  #left = 0;
  #phases = [0, 0.5];
  #hz = KEY_HZ;
  #envelope = 0;
  #low = 0;
  #band = 0;

  constructor(rate) {
    this.#rate = rate;
    this.#echo = new Float32Array(Math.round(rate * 0.36));
  }

  fill(samples, tempo, brightness) {
    this.#tempo = tempo;
    this.#brightness = brightness;
    for (let i = 0; i < samples.length; i++) {
      if (this.#left-- <= 0) this.#strike();
      samples[i] = this.#sample();
    }
  }

  #strike() {
    this.#step++;
    this.#left = Math.round(this.#rate * 60 / this.#tempo / 4);
    const chord = CHORDS[(this.#step >> 4) % CHORDS.length];
    this.#hz = KEY_HZ * 2 ** (chord[STEPS[this.#step % STEPS.length]] / 12);
    this.#envelope = this.#step % 4 === 0 ? 1 : 0.7;
  }

  #sample() {
    let saw = 0;
    for (let voice = 0; voice < 2; voice++) {
      const phase = this.#phases[voice] + this.#hz * (1 + 0.004 * voice) / this.#rate;
      this.#phases[voice] = phase - Math.floor(phase);
      saw += this.#phases[voice] - 0.5;
    }
    this.#envelope *= 1 - 5 / this.#rate;
    // A filter of second order, by two integrators.
    const cutoff = 150 + 5000 * this.#brightness * this.#envelope ** 2;
    const f = 2 * Math.sin(Math.PI * cutoff / this.#rate);
    this.#band += f * (saw - this.#low - 0.6 * this.#band);
    this.#low += f * this.#band;
    const dry = this.#low * this.#envelope;
    const at = this.#echoAt;
    this.#echoAt = (at + 1) % this.#echo.length;
    const wet = this.#echo[at];
    this.#echo[at] = dry + 0.45 * wet;
    return 0.55 * (dry + 0.5 * wet);
  }
}
