/**
 * The interface of `sab-message-port`: the original, out of the folder that was given with
 * `--sab-message-port`, our own library that takes its place, and the floor of both, which does
 * with no library what is played of it. All are driven by the same code.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { type Values, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, declineForEvents, type End, type EventEnd } from "../peer.ts";
import { kindOf, type Order, PATIENCE_MS, type Peer, type Role } from "../peer.ts";
import type { Place } from "../place.ts";
import { sends } from "../plays/stream.ts";

/** What is used of a port of the library. */
interface SabPort {
  postMessage(value: unknown): Promise<void> | undefined;
  read(timeout: number): unknown;
  read(timeout: number, blocking: true, count: number): unknown[];
  onmessage: ((event: { data: unknown }) => void) | null;
  close(): void;
}

/** What is used of the library. */
interface SabLibrary {
  SABMessagePort: new (side: Role, memory: SharedArrayBuffer, looks?: boolean) => SabPort;
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
interface SabSource {
  decline(place: Place): string | undefined;
  load(place: Place): Promise<SabLibrary>;
  /** Of the floor: whether its ends look before they sleep. */
  looks?(scenario: Scenario): boolean;
}

/** The original. */
const ORIGINAL: SabSource = {
  decline: ({ sabMessagePort }) =>
    sabMessagePort === undefined ? "is given with --sab-message-port DIR" : undefined,
  load: (place) => import(place.moduleUrl("sab-message-port")),
};

/** Our own. */
const DROP_IN: SabSource = {
  decline: () => undefined,
  load: async () =>
    await import("../../../impl-ts/src/compat/sab_message_port.ts") as unknown as SabLibrary,
};

/** The peer of a library: its `SABMessagePort`, in its best mode for each scenario. */
function sabPeer(source: SabSource): Peer {
  return {
    decline: (scenario, place) => declineSab(source, scenario, place),
    prepare() {
      return both(new SharedArrayBuffer(SIZE));
    },
    async open(order: Order, place): Promise<End> {
      const { gear, role, scenario } = order;
      const { SABMessagePort } = await source.load(place);
      const memory = gear as SharedArrayBuffer;
      const port = source.looks === undefined
        ? new SABMessagePort(role, memory)
        : new SABMessagePort(role, memory, source.looks(scenario));
      const isBlocking = kindOf(scenario, role) === "blocking";
      if (isOneWay(scenario)) {
        if (sends(order) || !isBlocking) return new SabEvents(port, scenario);
        return readingEnd(port, scenario);
      }
      // It cannot poll for an answer either: nothing would send the question.
      const polls = scenario.name === "dropbox" && role === "a";
      return isBlocking && !polls ? new SabBlocking(port, scenario) : new SabEvents(port, scenario);
    },
  };
}

/**
 * The peer of a library: its `MWChannel`, for a main thread and a worker. Down through shared
 * memory, where the worker blocks, and up through a `MessagePort`.
 */
function mwPeer(source: SabSource): Peer {
  return {
    decline(scenario, place) {
      if (scenario.ends !== "main-worker") return "is of a main thread and a worker";
      return declineSab(source, scenario, place);
    },
    async prepare(_scenario, place) {
      const { MWChannel } = await source.load(place);
      const channel = new MWChannel("m");
      const [value, transfer] = channel.postInit();
      return { a: { value: channel }, b: { value, transfer } };
    },
    async open(order: Order, place): Promise<End> {
      const { gear, role, scenario } = order;
      if (role === "a") return new SabEvents(gear as SabPort, scenario);
      const { MWChannel } = await source.load(place);
      const port = MWChannel.from(gear);
      if (!isOneWay(scenario)) return new SabBlocking(port, scenario);
      return sends(order) ? new SabEvents(port, scenario) : readingEnd(port, scenario);
    },
  };
}

/** Whether nothing comes back: a burst has an answer, unless it is the only one. */
function isOneWay({ name, fresh = false }: Scenario): boolean {
  return name === "stream" || name === "load" || name === "burst" && fresh;
}

/** Why such a library cannot do this. */
function declineSab(
  source: SabSource,
  scenario: Scenario,
  place: Place,
): string | undefined {
  if (scenario.format !== "json") return "takes JSON only";
  if (scenario.name === "memory" || scenario.size > 2 ** 24) return "not measured";
  return source.decline(place) ?? declineForEvents(scenario);
}

/** Only receives, and blocks; takes all messages that are there. */
function readingEnd(port: SabPort, scenario: Scenario): BlockingEnd {
  const values = valuesOf(scenario);
  /** The oldest is the last. */
  let taken: unknown[] = [];
  return {
    kind: "blocking",
    send() {
      throw new Error("Cannot send: this end never gets to its event loop");
    },
    receive() {
      if (taken.length === 0) {
        taken = port.read(PATIENCE_MS, true, MANY);
        if (taken.length === 0) throw new Error("No message came");
      }
      return values.numberOf(taken.pop());
    },
    close: () => port.close(),
  };
}

/** Receives and sends on an event loop. */
class SabEvents implements EventEnd {
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
class SabBlocking extends SabEvents {
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

/** The scenarios of the goals of the floor. */
const TURN_NAMES = ["echo", "stream", "burst", "cold"];

/**
 * What one turn has posted becomes one text, or several if there is much, and goes through shared
 * memory. Its ends may look before they sleep, where each has a processor.
 */
function turnPeer(looks: boolean): Peer {
  const peer = sabPeer({
    decline: () => undefined,
    load: async () => await import("../bare.ts") as unknown as SabLibrary,
    looks: ({ pin, wait }) => looks && pin === "free" && wait !== "park",
  });
  return {
    ...peer,
    decline(scenario, place) {
      if (!TURN_NAMES.includes(scenario.name)) return "is of the goals of the drop-in";
      if (!looks && (scenario.pin !== "free" || !scenario.fresh)) return "is of fresh threads";
      return peer.decline(scenario, place);
    },
  };
}

/** The peers of this file. */
export const peers = {
  "sab-message-port": sabPeer(ORIGINAL),
  "sab-message-port-mw": mwPeer(ORIGINAL),
  "millrace-drop-in": sabPeer(DROP_IN),
  "millrace-drop-in-mw": mwPeer(DROP_IN),
  "floor-turn": turnPeer(true),
  "floor-turn-park": turnPeer(false),
};
