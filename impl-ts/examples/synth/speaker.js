/**
 * The audio thread: takes a block of sound from the ring whenever one is due, and never waits.
 *
 * It runs 375 times a second, for hours. What `process` calls allocates nothing, so that no
 * collection of garbage ever makes a gap.
 *
 * @module
 */
import { Port } from "millrace";
import { SharedProperties } from "millrace/property";
import { tryReadInto } from "millrace/raw";
import { BLOCK, COUNTS, PLAYED, SPEAKER, UNDERRUNS } from "./shared.js";

class Speaker extends AudioWorkletProcessor {
  #sound;
  #volume;
  #told;
  #wish = new Float32Array(1);
  #gain = 0;
  #block = new Float32Array(BLOCK);
  #bytes = new Uint8Array(this.#block.buffer);
  #counts = new Float64Array(COUNTS);

  constructor({ processorOptions: { sound, panel } }) {
    super();
    this.#sound = Port.from(sound, { codec: "bytes" });
    const properties = SharedProperties.attach(panel, { endpoint: SPEAKER });
    this.#volume = properties.reader("volume");
    this.#told = properties.writer("counts");
  }

  process(_inputs, outputs) {
    const channel = outputs[0][0];
    const counts = this.#counts;
    if (tryReadInto(this.#sound, this.#bytes) === undefined) {
      channel.fill(0);
      counts[UNDERRUNS]++;
    } else {
      this.#play(channel);
      counts[PLAYED]++;
    }
    this.#told.set(counts);
    return true;
  }

  /** As loud as is wished for now; from block to block it changes without a click. */
  #play(channel) {
    this.#volume.getInto(this.#wish);
    const step = (this.#wish[0] - this.#gain) / BLOCK;
    for (let i = 0; i < BLOCK; i++) {
      this.#gain += step;
      channel[i] = this.#gain * this.#block[i];
    }
  }
}

registerProcessor("speaker", Speaker);
