/**
 * The audio thread: takes a block of sound from the ring whenever one is due, and never waits.
 *
 * It runs 375 times a second, for hours. What `process` calls allocates nothing, so that no
 * collection of garbage ever makes a gap.
 *
 * @module
 */
import { Port } from "millrace";
import { BLOCK, COUNTS, PLAYED, UNDERRUNS } from "./shared.js";

/** Blocks between two reports to the page. */
const REPORT_BLOCKS = 8;

class Speaker extends AudioWorkletProcessor {
  #sound;
  #meter;
  #block = new Float32Array(BLOCK);
  #bytes = new Uint8Array(this.#block.buffer);
  #counts = new Float64Array(COUNTS);
  #report = new Uint8Array(this.#counts.buffer);

  constructor({ processorOptions: { sound, meter } }) {
    super();
    this.#sound = Port.from(sound, { codec: "bytes" });
    this.#meter = Port.from(meter, { codec: "bytes" });
  }

  process(_inputs, outputs) {
    const channel = outputs[0][0];
    if (this.#sound.tryReadInto(this.#bytes) === undefined) {
      channel.fill(0);
      this.#counts[UNDERRUNS]++;
    } else {
      channel.set(this.#block);
      this.#counts[PLAYED]++;
    }
    const due = this.#counts[PLAYED] + this.#counts[UNDERRUNS];
    // Where the page is late there is no room, and the next report has it all.
    if (due % REPORT_BLOCKS === 0) this.#meter.tryWrite(this.#report);
    return true;
  }
}

registerProcessor("speaker", Speaker);
