/**
 * One interface for all that can carry the bytes of a stream: Web Streams, a connection of Deno, a
 * WebSocket. See `spec/stream.md`.
 *
 * @module
 */

import { throwCannot } from "../error.ts";
import { classOf } from "../memory/realm.ts";
import { layout } from "../memory/layout.ts";
import { until } from "../wait/waitable.ts";

/** What a link needs from its transport. At most one call of each method is pending at a time. */
export interface Transport {
  /** Reads the next bytes, of any number; undefined at the end. Rejects if the transport breaks. */
  read(): Promise<Uint8Array | undefined>;
  /** Writes all of these bytes. Rejects if that is impossible. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the outgoing byte stream after what was written. Reading goes on where it can. */
  end(): Promise<void>;
  /** Closes the transport; pending calls then end. */
  close(): void;
}

/**
 * Two Web Streams of bytes, one for each direction: those of a process, of `Duplex.toWeb` in Node,
 * or of a `WebSocketStream`.
 *
 * @example
 * ```ts
 * import { type ByteStreams, openStream } from "@millrace/millrace/stream";
 *
 * // A program that sends back what it gets: the preface, and every message.
 * const cat = new Deno.Command("cat", { stdin: "piped", stdout: "piped" }).spawn();
 * const streams: ByteStreams = { readable: cat.stdout, writable: cat.stdin };
 * const port = await openStream<string>(streams);
 * port.postMessage("to myself");
 * console.log(await port.readAsync()); // "to myself"
 * port.close();
 * await cat.status;
 * ```
 */
export interface ByteStreams {
  /** The bytes that the peer writes. */
  readonly readable: ReadableStream<Uint8Array>;
  /** The bytes for the peer. Closing this stream must not end the other direction. */
  readonly writable: WritableStream<Uint8Array>;
}

/**
 * A connection with methods to read and to write, such as `Deno.TcpConn` and `Deno.UnixConn`.
 *
 * @example
 * ```ts
 * import { type ByteConnection, openStream } from "@millrace/millrace/stream";
 *
 * const path = await Deno.makeTempDir();
 * const listener = Deno.listen({ transport: "unix", path: `${path}/socket` });
 * const connecting = Deno.connect({ transport: "unix", path: `${path}/socket` });
 * const server: ByteConnection = await listener.accept();
 * const [a, b] = await Promise.all([openStream(await connecting), openStream(server)]);
 * a.postMessage({ hello: "there" });
 * console.log(await b.readAsync()); // { hello: "there" }
 * a.close();
 * b.close();
 * listener.close();
 * ```
 */
export interface ByteConnection {
  /** Reads into the array, and returns the number of bytes; null at the end. */
  read(into: Uint8Array): Promise<number | null>;
  /** Writes some of the bytes, and returns their number. */
  write(bytes: Uint8Array): Promise<number>;
  /** Ends the outgoing direction. */
  closeWrite(): Promise<void>;
  /** Closes both directions. */
  close(): void;
  /** Called first: asks that written bytes be sent at once. */
  setNoDelay?(): void;
}

/**
 * Two files, one to read and one to write, such as two `Deno.FsFile` of named pipes. (Bytes written
 * to the Web Stream of a `Deno.FsFile` arrive only when it is closed: measured, Deno 2.9. Node has
 * no such files; there, use `Readable.toWeb` and `Writable.toWeb` of two `net.Socket`.)
 *
 * @example
 * ```ts
 * import { type ByteFiles, openStream } from "@millrace/millrace/stream";
 *
 * const folder = await Deno.makeTempDir();
 * const [there, back] = [`${folder}/there`, `${folder}/back`];
 * await new Deno.Command("mkfifo", { args: [there, back] }).output();
 * async function open(from: string, to: string): Promise<ByteFiles> {
 *   const files = await Promise.all([Deno.open(from), Deno.open(to, { write: true })]);
 *   return { reader: files[0], writer: files[1] };
 * }
 * const [one, other] = await Promise.all([open(back, there), open(there, back)]);
 * const [a, b] = await Promise.all([openStream<string>(one), openStream<string>(other)]);
 * a.postMessage("through a pipe");
 * console.log(await b.readAsync()); // "through a pipe"
 * a.close();
 * b.close();
 * ```
 */
export interface ByteFiles {
  /** The file with the bytes that the peer writes. */
  readonly reader: Pick<ByteConnection, "read" | "close">;
  /** The file for the bytes that the peer reads. */
  readonly writer: Pick<ByteConnection, "write" | "close">;
}

/**
 * An object that can carry a stream.
 *
 * @example
 * ```ts
 * import { type ByteTransport, openStream } from "@millrace/millrace/stream";
 *
 * const server = Deno.serve({ port: 0, onListen() {} }, (request) => {
 *   const { socket, response } = Deno.upgradeWebSocket(request);
 *   openStream<string>(socket).then((port) => {
 *     port.onmessage = ({ data }) => void port.postMessage(data.toUpperCase());
 *   });
 *   return response;
 * });
 * const transport: ByteTransport = new WebSocket(`ws://127.0.0.1:${server.addr.port}`);
 * const port = await openStream<string>(transport);
 * port.postMessage("over a socket");
 * console.log(await port.readAsync()); // "OVER A SOCKET"
 * port.close();
 * await server.shutdown();
 * ```
 */
export type ByteTransport = ByteStreams | ByteConnection | ByteFiles | WebSocket;

/** The most bytes that one call reads. */
const READ_SIZE = 64 * 1024;
/** A WebSocket that has more bytes than this to send gets no more. */
const BUFFERED_SIZE = 256 * 1024;

/** Finds out which kind of transport it is. */
export function transportOf(given: ByteTransport): Transport {
  // A Deno connection also has Web Streams, but closing its `writable` closes the whole connection.
  if ("closeWrite" in given) return overConnection(given);
  if ("reader" in given) return overConnection(connectionOf(given));
  if ("readable" in given && "writable" in given) return overStreams(given);
  if ("send" in given) return overWebSocket(given);
  throwCannot("open stream: neither streams, nor files, nor a connection or WebSocket");
}

function overStreams({ readable, writable }: ByteStreams): Transport {
  const reader = readable.getReader();
  const writer = writable.getWriter();
  writer.closed.catch(() => {}); // the rejection of a `write` or `close` says the same
  return {
    async read() {
      return (await reader.read()).value;
    },
    write: (bytes) => writer.write(bytes),
    end: () => writer.close(),
    close() {
      reader.cancel().catch(() => {});
      writer.abort().catch(() => {});
    },
  };
}

function overConnection(connection: ByteConnection): Transport {
  // A link writes all that it has at once. TCP holds small writes back until the peer has
  // acknowledged the last piece, which makes a short message up to 40 ms late (Linux).
  connection.setNoDelay?.();
  const bytes = new Uint8Array(READ_SIZE);
  return {
    async read() {
      const size = await connection.read(bytes);
      return size === null ? undefined : bytes.subarray(0, size); // valid until the next read
    },
    async write(all) {
      for (let at = 0; at < all.length;) at += await connection.write(all.subarray(at));
    },
    end: () => connection.closeWrite(),
    close() {
      try {
        connection.close();
      } catch {
        // It is closed already.
      }
    },
  };
}

/** Makes one connection of two files. Each direction ends when its file is closed. */
function connectionOf({ reader, writer }: ByteFiles): ByteConnection {
  let isEnded = false;
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    writer.close();
  };
  return {
    read: (into) => reader.read(into),
    write: (bytes) => writer.write(bytes),
    closeWrite: () => Promise.resolve(end()),
    close() {
      end();
      reader.close();
    },
  };
}

function overWebSocket(socket: WebSocket): Transport {
  const arrived: Uint8Array[] = [];
  let isOver = socket.readyState > WebSocket.OPEN;
  let wake = () => {};
  let look = () => {};
  const tell = (over: boolean) => {
    isOver ||= over;
    wake();
    look();
  };
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }) => {
    const isBinary = classOf(data) === "ArrayBuffer";
    if (isBinary) arrived.push(new Uint8Array(data));
    tell(!isBinary); // a message of text breaks the stream
  });
  socket.addEventListener("close", () => tell(true));
  socket.addEventListener("error", () => tell(true));
  const opened = socket.readyState !== WebSocket.CONNECTING
    ? Promise.resolve()
    : new Promise<void>((resolve) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("close", () => resolve());
    });
  return {
    async read() {
      while (arrived.length === 0 && !isOver) {
        await new Promise<void>((resolve) => wake = resolve);
      }
      return arrived.shift();
    },
    async write(bytes) {
      await opened;
      // The peer's credit is no bound: it may state a window of 1 GiB. No event tells that bytes
      // were sent, but if the peer takes them, its credit arrives.
      while (socket.bufferedAmount > BUFFERED_SIZE && socket.readyState === WebSocket.OPEN) {
        await until(layout.WAIT_POLL_MS, undefined, (end) => look = end);
      }
      if (socket.readyState !== WebSocket.OPEN) throw new Error("the WebSocket is closed");
      socket.send(bytes as Uint8Array<ArrayBuffer>);
    },
    // A WebSocket ends both directions at once. The side that has read the last frame closes it,
    // and the other side waits for that.
    end: () => Promise.resolve(),
    close: () => socket.close(),
  };
}
