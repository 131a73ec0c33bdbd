/** What the tests of calls share: a port that offers calls, and a peer that writes anything. */

import { tryReadMessage, writeMessage } from "../more/raw.ts";
import { encodeValues, readValues } from "./values.ts";
import { makeSend } from "../pipe/outgoing.ts";
import { layout } from "../memory/layout.ts";
import { Port } from "../port/port.ts";
import type { PortCreateOptions } from "../port/options.ts";

export const CALL = layout.FRAME_KIND_CALL;
export const RETURN = layout.FRAME_KIND_RETURN;
export const THROW = layout.FRAME_KIND_THROW;
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
    writeMessage(this.port, {
      kind,
      tag: tag >>> 0,
      codec: layout.CODEC_VALUES,
      payload: list(values),
    });
  }

  /** What has come: of each its kind and tag, and its values. */
  take(): unknown[][] {
    const all: unknown[][] = [];
    for (let message; (message = tryReadMessage(this.port)) !== undefined;) {
      const { kind, tag, codec, payload } = message;
      const values = codec === layout.CODEC_VALUES
        ? readValues(payload, undefined).values
        : ["plain"];
      all.push([kind, tag, ...values]);
    }
    return all;
  }
}

/** A list of values as bytes. */
export function list(values: unknown[]): Uint8Array {
  const send = makeSend(CALL);
  encodeValues(values, { codec: "json" }, send);
  return send.source.slice(0, send.size);
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
