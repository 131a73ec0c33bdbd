/** What the tests of calls share: a port that offers calls, and a peer that writes anything. */

import { encodeValues, ValueList } from "./values.ts";
import { makePayload } from "../codec/codec.ts";
import {
  CODEC_VALUES,
  FRAME_KIND_CALL,
  FRAME_KIND_RETURN,
  FRAME_KIND_THROW,
} from "../memory/layout.ts";
import { Port, type PortCreateOptions } from "../port/port.ts";

export const CALL = FRAME_KIND_CALL;
export const RETURN = FRAME_KIND_RETURN;
export const THROW = FRAME_KIND_THROW;
export const CANCEL = 0x40000000;
export const MORE = 0x80000000;

/** A port, and its peer, which reads and writes calls as plain messages. */
// deno-lint-ignore no-explicit-any
export function withRaw(options: PortCreateOptions<any, any> = {}): [Port<any>, Raw] {
  // deno-lint-ignore no-explicit-any
  const port = Port.create<any>(options);
  return [port, new Raw(port)];
}

/** The peer. */
export class Raw {
  // deno-lint-ignore no-explicit-any
  readonly port: Port<any>;

  constructor(port: Port<unknown>) {
    this.port = Port.attach(port.memory, { calls: true });
  }

  /** Writes one message of a call. */
  send(kind: number, tag: number, ...values: unknown[]): void {
    this.port.writeMessage({ kind, tag: tag >>> 0, codec: CODEC_VALUES, payload: list(values) });
  }

  /** What has come: of each its kind and tag, and its values. */
  take(): unknown[][] {
    const all: unknown[][] = [];
    for (let message; (message = this.port.tryReadMessage()) !== undefined;) {
      const { kind, tag, codec, payload } = message;
      const values = codec === CODEC_VALUES ? new ValueList(payload, undefined).values : ["plain"];
      all.push([kind, tag, ...values]);
    }
    return all;
  }
}

/** A list of values as bytes. */
export function list(values: unknown[]): Uint8Array {
  const payload = makePayload();
  encodeValues(values, { codec: "json" }, payload);
  return payload.source.slice(0, payload.size);
}

/** The code that something throws, or what it gives. */
export function outcome(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

/** Lets the event loop turn a few times. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve));
}
