/**
 * The floor of a port: what is sent is made a text at once, so that what is changed later does not
 * count, and goes through shared memory. Texts that one turn has posted go many at a time.
 *
 * @module
 */
import type { Scenario } from "../../contract.ts";
import { type BareEnds, bareEnds, bareMemory } from "../bare.ts";
import { Meter } from "../meter.ts";
import { type Values, valuesOf } from "../payload.ts";
import { type BlockingEnd, both, type End, type EventEnd, kindOf, type Order } from "../peer.ts";
import { PATIENCE_MS, type Peer, type Report } from "../peer.ts";
import { check, reportOf } from "../plays/echo.ts";

/** Of each ring, as large as that of `millrace`. */
const CAPACITY = 256 * 1024;
/** Posts of one turn that go together, at most; 16 and 120 were no better. */
const BATCH = 64;

/** How the ends of such a floor wait. */
interface BareWait {
  /** Whether they look for a message before they sleep, where each has a processor. */
  readonly looks: boolean;
  /** Milliseconds that an event loop blocks before it sleeps. */
  readonly nap?: number;
}

/** The peers of this file: they look before they sleep, nap a tick of the clock, sleep at once. */
export const peers = {
  "floor-text": textPeer({ looks: true }),
  // A sleep with a shorter limit than a tick has a timer set for it.
  "floor-text-nap": textPeer({ looks: false, nap: 4 }),
  "floor-text-park": textPeer({ looks: false }),
};

/** The peer, with ends that wait so. */
function textPeer({ looks, nap = 0 }: BareWait): Peer {
  return {
    decline({ format, name, ends, pin, fresh = false }, place) {
      if (format !== "json") return "JSON only";
      const isOfStarting = name === "cold" || name === "burst" && fresh;
      if (!isOfStarting && name !== "codec" && name !== "calls") return "is of threads that start";
      if (!looks && nap === 0 && pin === "one-core") return "is floor-text there";
      if (nap > 0 && (ends === "workers" || pin === "free")) return "naps on one processor";
      return nap > 0 && place.name === "chromium" ? "a page must not block" : undefined;
    },
    prepare() {
      return both(bareMemory(CAPACITY));
    },
    open({ gear, role, scenario }: Order): End {
      const ends = bareEnds(gear as SharedArrayBuffer, role, looks && scenario.pin === "free");
      if (kindOf(scenario, role) === "blocking") return blockingEnd(ends, scenario);
      return new TextEvents(ends, scenario, nap);
    },
    play: (order) => order.scenario.ends === "worker" ? playAlone(order) : undefined,
  };
}

/** Both ends on one thread. */
function playAlone({ scenario }: Order): Promise<Report> {
  const memory = bareMemory(CAPACITY);
  const { writer } = bareEnds(memory, "a", false);
  const { reader } = bareEnds(memory, "b", false);
  const values = valuesOf(scenario);
  const meter = new Meter(scenario);
  let count = 0;
  do {
    writer.write(JSON.stringify(values.with(count)));
    check(values.numberOf(reader.tryRead()), count++);
  } while (meter.turn());
  return Promise.resolve(reportOf(meter, undefined));
}

function blockingEnd({ writer, reader }: BareEnds, scenario: Scenario): BlockingEnd {
  const values = valuesOf(scenario);
  return {
    kind: "blocking",
    send: (number) => writer.write(JSON.stringify(values.with(number))),
    receive() {
      const value = reader.read(PATIENCE_MS);
      if (value === undefined) throw new Error("No message came");
      return values.numberOf(value);
    },
    sleeps: () => reader.sleeps,
    close() {},
  };
}

class TextEvents implements EventEnd {
  readonly kind = "events";
  readonly tells = true;
  readonly #ends: BareEnds;
  readonly #values: Values;
  readonly #nap: number;
  /** Not written yet. */
  #texts: string[] = [];
  #written: Promise<void> | undefined;
  /** Whether a batch waits for room: nothing may go before it. */
  #isHeld = false;

  constructor(ends: BareEnds, scenario: Scenario, nap: number) {
    this.#ends = ends;
    this.#values = valuesOf(scenario);
    this.#nap = nap;
  }

  send(number: number): Promise<void> {
    this.#texts.push(JSON.stringify(this.#values.with(number)));
    // The other end may begin before this turn is over.
    if (this.#texts.length === BATCH && !this.#isHeld && this.#tryWrite(this.#texts)) {
      this.#texts = [];
    }
    return this.#written ??= this.#writeAll();
  }

  listen(take: (number: number) => void): void {
    this.#ends.reader.listen((value) => take(this.#values.numberOf(value)), this.#nap);
  }

  sleeps(): number {
    return this.#ends.reader.sleeps;
  }

  close(): void {
    this.#ends.reader.close();
  }

  #tryWrite(texts: readonly string[]): boolean {
    const isBatch = texts.length > 1;
    return this.#ends.writer.tryWrite(isBatch ? `[${texts.join()}]` : texts[0] as string, isBatch);
  }

  /** At the end of the turn. */
  async #writeAll(): Promise<void> {
    await undefined;
    while (this.#texts.length > 0) {
      const texts = this.#texts.splice(0, BATCH);
      if (this.#tryWrite(texts)) continue;
      this.#isHeld = true;
      await this.#ends.writer.writeLater(`[${texts.join()}]`, true);
      this.#isHeld = false;
    }
    this.#written = undefined;
  }
}
