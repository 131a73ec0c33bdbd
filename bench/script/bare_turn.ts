/**
 * The interface of `sab-message-port`, as far as it is played, with no library: what one turn has
 * posted becomes one text, or several if there is much.
 *
 * @module
 */
import { type BareEnds, bareEnds } from "./bare_text.ts";
import { PATIENCE_MS, type Role } from "./peer.ts";

/** Of both directions: what the library takes if one says nothing. */
const SIZE = 256 * 1024;
/**
 * Posts of one turn that become one text, at most; 16 and 120 were no better.
 */
const BATCH = 64;

/** One end of a port. */
export class SABMessagePort {
  readonly #memory: SharedArrayBuffer;
  readonly #ends: BareEnds;
  /** Not written yet. */
  #values: unknown[] = [];
  #written: Promise<void> | undefined;

  constructor(side: Role = "a", memory = new SharedArrayBuffer(SIZE), looks = false) {
    this.#memory = memory;
    this.#ends = bareEnds(memory, side, looks);
  }

  static from({ memory }: { memory: SharedArrayBuffer }): SABMessagePort {
    return new SABMessagePort("b", memory);
  }

  postInit(): [unknown, Transferable[]] {
    return [{ memory: this.#memory }, []];
  }

  postMessage(value: unknown): Promise<void> {
    this.#values.push(value);
    return this.#written ??= this.#writeAll();
  }

  read(timeout?: number): unknown;
  read(timeout: number, blocking: true, count: number): unknown[];
  /** The newest first, where a count is given. */
  read(timeout?: number, _blocking?: true, count?: number): unknown {
    const { reader } = this.#ends;
    const value = reader.read(timeout ?? PATIENCE_MS);
    if (count === undefined) return value ?? null;
    const values: unknown[] = [];
    let next = value;
    while (next !== undefined) {
      values.push(next);
      next = values.length < count ? reader.tryRead() : undefined;
    }
    return values.reverse();
  }

  set onmessage(handler: (event: { data: unknown }) => void) {
    this.#ends.reader.listen((data) => handler({ data }));
  }

  close(): void {
    this.#ends.reader.close();
  }

  /** At the end of the turn. */
  async #writeAll(): Promise<void> {
    await undefined;
    const { writer } = this.#ends;
    while (this.#values.length > 0) {
      const text = JSON.stringify(this.#values.splice(0, BATCH));
      if (!writer.tryWrite(text, true)) await writer.writeLater(text, true);
    }
    this.#written = undefined;
  }
}
