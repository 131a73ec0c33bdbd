/**
 * The stream of `impl-ts`, as the driver plays it.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { ClosedError, MessageError, MillraceError } from "../../impl-ts/src/error.ts";
import { PeerFailedError } from "../../impl-ts/src/error.ts";
import { tryReadMessage, tryWriteMessage } from "../../impl-ts/src/more/raw.ts";
import { StreamLink } from "../../impl-ts/src/stream/link.ts";
import { toHex } from "../reference/bytes.ts";
import type { Drained, Failure, Item, Payload, Reason, Result } from "../reference/case.ts";
import { toBytes } from "../static/difference.ts";
import type { Sizes } from "./case.ts";
import type { StreamEndpoint } from "./driver.ts";

/** Turns of the event loop in which a message that was posted in part goes on. */
const TURNS = 3;

/** One side of a stream of TypeScript. */
export class TypeScriptEndpoint implements StreamEndpoint {
  readonly #link: StreamLink<Uint8Array>;

  constructor(own: Sizes, limit: number) {
    this.#link = new StreamLink({ ...own, maxMessageSize: limit, codec: "bytes" });
  }

  arrive(bytes: Uint8Array): void {
    this.#link.receive(bytes);
  }

  cut(): void {
    this.#link.receiveEnd();
  }

  async read(count: number): Promise<Result> {
    await turn();
    const items: Item[] = [];
    while (items.length < count) {
      const got = this.#readOne();
      if (typeof got !== "string" && !("code" in got)) items.push(got);
      else return this.#ending(items, got);
    }
    return { items };
  }

  write(payload: Payload): Result {
    return this.#call(() => {
      const { kind, codec, tag } = payload;
      const { port } = this.#link;
      if (port === undefined) return "full";
      return tryWriteMessage(port, { kind, codec, tag, payload: toBytes(payload) } as never)
        ? "ok"
        : "full";
    });
  }

  post(payload: Payload): Result {
    return this.#call(() => {
      const posted = this.#link.port!.postMessage(toBytes(payload));
      posted.catch(() => {}); // what becomes of it, the other operations show
      return "ok";
    });
  }

  end(): Result {
    return this.#call(() => {
      this.#link.port!.end();
      return "ok";
    });
  }

  close(): Result {
    this.#link.close();
    return "ok";
  }

  async take(): Promise<{ bytes: Uint8Array; ends: boolean }> {
    const bytes: number[] = [];
    for (let left = TURNS; left > 0; left--) {
      await turn();
      for (let piece; (piece = this.#link.transmit()) !== undefined;) bytes.push(...piece);
    }
    return { bytes: Uint8Array.from(bytes), ends: this.#link.hasEnded };
  }

  #readOne(): Item | Failure | string {
    const { port, failure } = this.#link;
    if (port === undefined) return failure === undefined ? "nothing" : failureOf(failure);
    try {
      const message = tryReadMessage(port);
      if (message === undefined) return port.ended ? "ended" : "nothing";
      const { kind, codec, tag, payload } = message;
      return { kind, codec, tag, hex: toHex(payload) };
    } catch (error) {
      if (error instanceof MessageError) return { report: error.code };
      return failureOf(error);
    }
  }

  #ending(items: Item[], end: string | Failure): Drained {
    return typeof end === "string" ? { items, end } : { items, end: end.code, reason: end.reason };
  }

  #call(call: () => Result): Result {
    try {
      return call();
    } catch (error) {
      return failureOf(error);
    }
  }
}

/** A code, and the reason beside it. Throws what is no documented failure. */
function failureOf(error: unknown): string | Failure {
  if (error instanceof TypeError || error instanceof RangeError) return "refused";
  if (!(error instanceof MillraceError)) throw error;
  const { code } = error;
  const reason = error instanceof PeerFailedError || error instanceof ClosedError
    ? error.reason as Reason | undefined
    : undefined;
  return reason === undefined ? code : { code, reason };
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
