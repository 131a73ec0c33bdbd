/**
 * A thread that looks at a file without a pause, while the testee works on it and the kit waits for
 * the reply: so it sees what holds for microseconds only. See `scripts/files.ts`.
 *
 * @module
 */

import * as system from "./system.ts";
import { scope } from "../../../tools/worker_scope.ts";
import { recordAt } from "../../reference/encode.ts";
import { fieldOf, sizeOf, valueOf } from "../../reference/layout.ts";

/** What to look for; the words of `control` are those of `CONTROL`. */
export interface WatchOrder {
  look: "named" | "header" | "attached" | "unlocked";
  /** Where the file is, or will be. */
  path: string;
  /** Whose record it is about. */
  endpoint: number;
  /** Where this thread is to run. */
  processor: number;
  control: SharedArrayBuffer;
}

/** What was seen; nothing where it never was. */
export interface Seen {
  /** Whether nothing can have been missed: the look before was just before. */
  isSharp: boolean;
  /** The first bytes of the file, when its name was there. */
  start?: Uint8Array;
  /** Whether the record was locked then. */
  isLocked: boolean;
  /** Whether the state was attached then. */
  isAttached: boolean;
}

/** Words by which the two threads tell each other how far they are. */
export const CONTROL = { begun: 0, stop: 1 } as const;

const HEADER_SIZE = sizeOf("segment_header");
const RECORD_SIZE = sizeOf("endpoint_record");
const ATTACHED = valueOf("endpoint_state", "attached");

/** Between two looks of a thread that runs, with some calls in each. */
const SHARP_MS = 0.03;

const LOOKS: Record<WatchOrder["look"], (watch: Watch) => Seen | undefined> = {
  /** As soon as there is a file: what it holds. */
  named({ path, until, recordAt }) {
    const start = new Uint8Array(HEADER_SIZE + RECORD_SIZE);
    let [fd, size] = [-1, 0];
    const isSharp = until(() => {
      fd = system.open(path);
      if (fd < 0) return false;
      size = system.readStart(fd, start);
      return true;
    });
    if (isSharp === undefined) return undefined;
    const isLocked = system.isLocked(fd, recordAt, RECORD_SIZE);
    system.close(fd);
    return { start: start.slice(0, size), isLocked, isAttached: true, isSharp };
  },

  /**
   * From when the header is locked on: whether there is a moment at which neither that nor the
   * record after it is. One call asks for both, for endpoint 0.
   */
  header({ fd, until }) {
    const size = HEADER_SIZE + RECORD_SIZE;
    if (until(() => system.isLocked(fd(), 0, HEADER_SIZE)) === undefined) return undefined;
    const takesBoth = () => system.lock(fd(), 0, size);
    let isFree = false;
    const isSharp = until(() => {
      isFree = takesBoth();
      if (!isFree && system.isLocked(fd(), 0, HEADER_SIZE)) return false;
      isFree ||= takesBoth(); // it may have been given back since
      return true;
    });
    if (isFree) system.unlock(fd(), 0, size);
    return { isLocked: !isFree, isAttached: !isFree, isSharp: isSharp ?? false };
  },

  /** As soon as the state is attached: whether the record is locked. */
  attached({ until, isLocked, isAttached }) {
    const isSharp = until(isAttached);
    return isSharp === undefined ? undefined : { isAttached: true, isLocked: isLocked(), isSharp };
  },

  /** As soon as the record is not locked any more: whether the state is still attached. */
  unlocked({ until, isLocked, isAttached }) {
    const isSharp = until(() => !isLocked());
    return isSharp === undefined
      ? undefined
      : { isLocked: false, isAttached: isAttached(), isSharp };
  },
};

/** The file of an order, opened when it is first needed. */
class Watch {
  readonly path: Uint8Array<ArrayBuffer>;
  readonly recordAt: number;
  readonly #control: Int32Array;
  readonly #order: WatchOrder;
  #fd = -1;
  #state: { words: Int32Array; mapping: system.Mapping } | undefined;

  constructor(order: WatchOrder) {
    this.#order = order;
    this.path = system.pathBytes(order.path);
    this.recordAt = recordAt(order.endpoint);
    this.#control = new Int32Array(order.control);
  }

  /** Looks until something holds, and says whether sharply; nothing where it is over before. */
  readonly until = (holds: () => boolean): boolean | undefined => {
    let before = -Infinity;
    for (;;) {
      // Before the look: what holds when all is over is still seen, and a look that took long,
      // for the thread did not run in the middle of it, is not taken for a sharp one.
      const isOver = Atomics.load(this.#control, CONTROL.stop) !== 0;
      const begun = performance.now();
      if (holds()) return performance.now() - before < SHARP_MS;
      if (isOver) return undefined;
      before = begun;
    }
  };

  readonly fd = (): number => {
    if (this.#fd < 0) this.#fd = system.open(this.path);
    if (this.#fd < 0) throw new Error(`cannot open ${this.#order.path}`);
    return this.#fd;
  };

  readonly isLocked = (): boolean => system.isLocked(this.fd(), this.recordAt, RECORD_SIZE);

  readonly isAttached = (): boolean => {
    if (this.#state === undefined) {
      const mapping = new system.Mapping(this.fd(), this.recordAt + RECORD_SIZE);
      const at = this.recordAt + fieldOf("endpoint_record", "state").offset;
      this.#state = { mapping, words: new Int32Array(mapping.buffer, at, 1) };
    }
    return Atomics.load(this.#state.words, 0) === ATTACHED;
  };

  close(): void {
    this.#state?.mapping.release();
    if (this.#fd >= 0) system.close(this.#fd);
  }
}

scope.onmessage = ({ data }) => {
  const order = data as WatchOrder;
  system.setProcessors(0, [order.processor]);
  const watch = new Watch(order);
  // Opened and mapped before the testee begins.
  if (order.look !== "named") watch.isAttached();
  Atomics.store(new Int32Array(order.control), CONTROL.begun, 1);
  const seen = LOOKS[order.look](watch);
  watch.close();
  scope.postMessage({ seen });
};
