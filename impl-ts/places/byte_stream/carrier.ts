import type { ByteStreams } from "millrace/stream";

/** Two streams of bytes over a `MessagePort`, which has no memory in common with its peer. */
export function streamsOver(carrier: MessagePort): ByteStreams {
  const readable = new ReadableStream<Uint8Array>({
    start(to) {
      carrier.onmessage = ({ data }) => {
        if (data !== null) return to.enqueue(data);
        to.close();
        carrier.onmessage = null;
      };
    },
    cancel() {
      carrier.onmessage = null;
      carrier.close();
    },
  });
  const writable = new WritableStream<Uint8Array>({
    write: (bytes) => carrier.postMessage(bytes),
    close: () => carrier.postMessage(null),
  });
  return { readable, writable };
}
