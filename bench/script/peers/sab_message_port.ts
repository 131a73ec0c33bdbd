/** `sab-message-port`, out of the folder that was given with `--sab-message-port`. @module */
import type { Scenario } from "../../contract.ts";
import { type BlockingEnd, declineForEvents, type End, type EventEnd, kindOf } from "../peer.ts";
import { type Order, PATIENCE_MS, type Peer } from "../peer.ts";
import { sends } from "../play_stream.ts";
import type { Place } from "../place.ts";
import { type Values, valuesOf } from "../payload.ts";

/** What is used of a port of the library. */
export interface SabPort {
  postMessage(value: unknown): Promise<void> | undefined;
  read(timeout: number): unknown;
  read(timeout: number, blocking: true, count: number): unknown[];
  onmessage: ((event: { data: unknown }) => void) | null;
  close(): void;
}

/** What is used of the library. */
export interface SabLibrary {
  SABMessagePort: new (side: "a" | "b", memory: SharedArrayBuffer) => SabPort;
  MWChannel: {
    new (side: "m"): SabPort & { postInit(): [unknown, Transferable[]] };
    from(message: unknown): SabPort;
  };
}

/** Of both directions: what the library takes if one says nothing. */
const SIZE = 256 * 1024;
/** Of one direction, what a batch of a stream takes at most: it has to fit in at once. */
const BATCH_SIZE = SIZE * 0.4;
/** Messages that a reader takes at once, at most: all that are there. */
const MANY = 1_000;
/** How long a thread blocks before it looks whether the play is over. */
const SLICE_MS = 10;

/** A library with that interface, and why it is not there. */
export interface SabSource {
  decline(place: Place): string | undefined;
  load(place: Place): Promise<SabLibrary>;
}

/** The original. */
export const ORIGINAL: SabSource = {
  decline: ({ sabMessagePort }) =>
    sabMessagePort === undefined ? "is given with --sab-message-port DIR" : undefined,
  load: (place) => import(place.moduleUrl("sab-message-port")),
};

export default sabPeer(ORIGINAL);

/** The peer of a library: its `SABMessagePort`, in its best mode for each scenario. */
export function sabPeer(source: SabSource): Peer {
  return {
    decline: (scenario, place) => declineSab(source, scenario, place),
    prepare() {
      const memory = new SharedArrayBuffer(SIZE);
      return { a: { value: memory }, b: { value: memory } };
    },
    async open(order: Order, place): Promise<End> {
      const { gear, role, scenario } = order;
      const { SABMessagePort } = await source.load(place);
      const port = new SABMessagePort(role, gear as SharedArrayBuffer);
      const isBlocking = kindOf(scenario, role) === "blocking";
      if (isOneWay(scenario)) {
        if (sends(order) || !isBlocking) return new SabEvents(port, scenario);
        return new SabReader(port, scenario);
      }
      // It cannot poll for an answer either: nothing would send the question.
      const polls = scenario.name === "dropbox" && role === "a";
      return isBlocking && !polls ? new SabBlocking(port, scenario) : new SabEvents(port, scenario);
    },
  };
}

/** Whether nothing comes back: a burst has an answer, unless it is the only one. */
export function isOneWay({ name, fresh = false }: Scenario): boolean {
  return name === "stream" || name === "load" || name === "burst" && fresh;
}

/** Why such a library cannot do this. */
export function declineSab(
  source: SabSource,
  scenario: Scenario,
  place: Place,
): string | undefined {
  if (scenario.format !== "json") return "takes JSON only";
  if (scenario.name === "memory" || scenario.size > 2 ** 24) return "not measured";
  return source.decline(place) ?? declineForEvents(scenario);
}

/** Only receives, and blocks; takes all messages that are there. */
export class SabReader implements BlockingEnd {
  readonly kind = "blocking";
  readonly #port: SabPort;
  readonly #values: Values;
  /** The oldest is the last. */
  #taken: unknown[] = [];

  constructor(port: SabPort, scenario: Scenario) {
    this.#port = port;
    this.#values = valuesOf(scenario);
  }

  send(): never {
    throw new Error("Cannot send: this end never gets to its event loop");
  }

  receive(): number {
    if (this.#taken.length === 0) {
      this.#taken = this.#port.read(PATIENCE_MS, true, MANY);
      if (this.#taken.length === 0) throw new Error("No message came");
    }
    return this.#values.numberOf(this.#taken.pop());
  }

  close(): void {
    this.#port.close();
  }
}

/** Receives and sends on an event loop. */
export class SabEvents implements EventEnd {
  readonly kind = "events";
  readonly tells = true;
  /** About twice as fast as to send on and on, which makes parts that wait for each other. */
  readonly batch: number;
  protected readonly port: SabPort;
  protected readonly values: Values;

  constructor(port: SabPort, scenario: Scenario) {
    this.batch = Math.max(1, Math.min(MANY, Math.trunc(BATCH_SIZE / scenario.size)));
    this.port = port;
    this.values = valuesOf(scenario);
  }

  send(number: number): void | Promise<void> {
    // It keeps the object until it writes it.
    return this.port.postMessage({ ...this.values.with(number) as object });
  }

  listen(take: (number: number) => void): void {
    this.port.onmessage = ({ data }) => take(this.values.numberOf(data));
  }

  close(): void {
    this.port.close();
  }
}

/**
 * Blocks until a message comes, which is the library's fastest way. It writes on the event loop,
 * however, so that what was sent has to be awaited before the thread blocks again.
 */
export class SabBlocking extends SabEvents {
  #sent: void | Promise<void> = undefined;
  #isOpen = true;

  override send(number: number): void | Promise<void> {
    return this.#sent = super.send(number);
  }

  override listen(take: (number: number) => void): void {
    this.#serve(take);
  }

  override close(): void {
    this.#isOpen = false;
    super.close();
  }

  /** Null also when the other end has closed both. */
  #read(): unknown {
    try {
      return this.port.read(SLICE_MS);
    } catch (error) {
      if (!/disposed/.test(String(error))) throw error;
      this.#isOpen = false;
      return null;
    }
  }

  async #serve(take: (number: number) => void): Promise<void> {
    // What the play sends at once goes out before this blocks.
    await Promise.resolve();
    await this.#sent;
    this.#sent = undefined;
    while (this.#isOpen) {
      const value = this.#read();
      if (value === null) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        continue;
      }
      take(this.values.numberOf(value));
      if (this.#sent === undefined) continue;
      await this.#sent;
      this.#sent = undefined;
    }
  }
}
