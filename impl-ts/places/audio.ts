/**
 * As much of Web Audio as the scenarios use: their types are checked where nothing of it exists.
 *
 * @module
 */
import { type Stage, within } from "./stage.ts";

/** Samples of one block: what a processor is asked for at a time. */
export const BLOCK = 128;
const SAMPLE_RATE = 48_000;

/** Renders as fast as it can, without a device. */
export interface OfflineContext {
  readonly audioWorklet: { addModule(url: string): Promise<void> };
  readonly destination: unknown;
  startRendering(): Promise<{ getChannelData(channel: number): Float32Array }>;
  suspend(seconds: number): Promise<void>;
  resume(): Promise<void>;
}

/** A processor, seen from the page. */
interface WorkletNode {
  readonly port: MessagePort;
  onprocessorerror: ((event: ErrorEvent) => void) | null;
  connect(destination: unknown): void;
}

/** What a page has. */
interface PageScope {
  OfflineAudioContext: new (channels: number, length: number, rate: number) => OfflineContext;
  AudioWorkletNode: new (context: OfflineContext, name: string, options: object) => WorkletNode;
}

/** A processor that is ready to be rendered. */
export interface Playing {
  readonly context: OfflineContext;
  /** What the processor's function returned at its end; rejects with what it threw. */
  readonly result: Promise<unknown>;
}

/** The time at which a block begins. */
export function timeOf(block: number): number {
  return block * BLOCK / SAMPLE_RATE;
}

/** Makes a context of so many blocks, and puts the scenario's processor into it. */
export async function placeProcessor(
  { processor }: Stage,
  given: object,
  blocks: number,
): Promise<Playing> {
  const { OfflineAudioContext, AudioWorkletNode } = globalThis as unknown as PageScope;
  const context = new OfflineAudioContext(1, blocks * BLOCK, SAMPLE_RATE);
  await within(context.audioWorklet.addModule(processor!));
  const node = new AudioWorkletNode(context, "scenario", { processorOptions: given });
  const result = new Promise((resolve, reject) => {
    node.port.onmessage = ({ data }) => {
      if ("error" in data) reject(new Error(`In the processor: ${data.error}`));
      else resolve(data.value);
    };
    node.onprocessorerror = ({ message }) => reject(new Error(`The processor failed: ${message}`));
  });
  node.connect(context.destination);
  return { context, result };
}
