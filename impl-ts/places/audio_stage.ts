/**
 * The stage in the scope of an audio worklet, which has next to nothing of the web.
 *
 * @module
 */
import type { ProcessorPart } from "./stage.ts";

/** What that scope has, as far as it is used here. */
interface WorkletScope {
  AudioWorkletProcessor: new () => { readonly port: MessagePort };
  registerProcessor(name: string, processor: unknown): void;
}

const { AudioWorkletProcessor, registerProcessor } = globalThis as unknown as WorkletScope;

/** Registers the processor that plays the part, and tells the page what came of it. */
export function playProcessor<Given>(part: ProcessorPart<Given>): void {
  class Processor extends AudioWorkletProcessor {
    readonly #play: ReturnType<ProcessorPart<Given>>;

    constructor({ processorOptions }: { processorOptions: Given }) {
      super();
      try {
        this.#play = part(processorOptions);
      } catch (error) {
        this.#play = () => {
          throw error;
        };
      }
    }

    /** Allocates nothing, except at the end. */
    process(_inputs: unknown, outputs: Float32Array[][]): boolean {
      try {
        const value = this.#play(outputs[0]![0]!);
        if (value === undefined) return true;
        this.port.postMessage({ value });
      } catch (error) {
        this.port.postMessage({ error: error instanceof Error ? error.stack : String(error) });
      }
      return false;
    }
  }
  registerProcessor("scenario", Processor);
}
