import type { ByteStreams } from "millrace/stream";

/** Two streams of bytes over a `MessagePort`, which has no memory in common with its peer. */
export interface Carried extends ByteStreams {
  /** Resolves when the peer's bytes have ended, or nobody reads them any more. */
  readonly over: Promise<void>;
}

/** Makes the streams of one end of the carrier. */
export function streamsOver(carrier: MessagePort): Carried {
  let resolve: () => void;
  const over = new Promise<void>((settle) => resolve = settle);
  const readable = new ReadableStream<Uint8Array>({
    start(to) {
      carrier.onmessage = ({ data }) => {
        if (data !== null) return to.enqueue(data);
        to.close();
        carrier.onmessage = null;
        resolve();
      };
    },
    cancel() {
      carrier.onmessage = null;
      carrier.close();
      resolve();
    },
  });
  const writable = new WritableStream<Uint8Array>({
    write: (bytes) => carrier.postMessage(bytes),
    close: () => carrier.postMessage(null),
  });
  return { readable, writable, over };
}
