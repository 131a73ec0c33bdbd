/**
 * Where a testee finds the bytes of its stream, and the kit's end of them: a Unix socket, a TCP
 * connection, or a pair of FIFOs. The kit listens and the testee connects.
 *
 * @module
 */

import { Random } from "../live/workload.ts";
import type { Transport, TransportKind } from "../protocol.ts";
import { sleep } from "./stage.ts";

/** The kit's end of two byte streams. Nothing is kept here and nothing is checked. */
export interface Wire {
  /** The next bytes; nothing at their end, however it came. */
  read(): Promise<Uint8Array | undefined>;
  /** Writes all of it; says whether that could be done. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Ends what the testee reads, and goes on reading. */
  end(): Promise<void>;
  /** Takes nothing that the testee writes from then on, where a transport can be so. */
  deaf?(): Promise<void>;
  /** Gives up both ways at once. */
  kill(): void;
}

/** A place to which one testee connects once. */
interface Dock {
  readonly transport: Transport;
  /** The kit's end, as soon as the testee has connected. */
  readonly wire: Promise<Wire>;
  /** Gives the place up; the kit's end stays. */
  close(): void;
}

const READ_SIZE = 64 * 1024;

let docks = 0;

/** Makes a place of this kind; its files are in a folder of the kit. */
export async function openDock(kind: TransportKind, folder: string): Promise<Dock> {
  const path = `${folder}/stream${++docks}`;
  if (kind === "fifo") return await fifoDock(path);
  const listener: Deno.Listener = kind === "unix"
    ? Deno.listen({ transport: "unix", path })
    : Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const wire = listener.accept().then((connection) => {
    if (kind === "tcp") (connection as Deno.TcpConn).setNoDelay();
    return new SocketWire(connection);
  });
  wire.catch(() => {}); // nobody has connected
  const transport: Transport = kind === "unix"
    ? { transport: kind, path }
    : { transport: kind, tcp_port: (listener.addr as Deno.NetAddr).port };
  return { transport, wire, close: () => listener.close() };
}

async function writeAll(
  to: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<boolean> {
  try {
    for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
    return true;
  } catch {
    return false; // the testee has gone; what it has done before, the reading end says
  }
}

class SocketWire implements Wire {
  readonly #connection: Deno.Conn;

  constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  async read(): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(READ_SIZE);
    const size = await this.#connection.read(bytes).catch(() => null);
    return size === null ? undefined : bytes.subarray(0, size);
  }

  async write(bytes: Uint8Array): Promise<boolean> {
    return await writeAll(this.#connection, bytes);
  }

  async end(): Promise<void> {
    await this.#connection.closeWrite().catch(() => {});
  }

  kill(): void {
    try {
      this.#connection.close();
    } catch {
      // It is closed already.
    }
  }
}

/** Opens the FIFO that its argument names, says so by a byte, and passes on what comes. */
const PASS_ON = 'exec <"$1" && echo && exec cat';

/** Two FIFOs. Whoever opens one end waits for the other end, unless somebody has both. */
async function fifoDock(path: string): Promise<Dock> {
  const [there, back] = [`${path}in`, `${path}out`];
  const { success } = await new Deno.Command("mkfifo", { args: ["-m", "600", there, back] })
    .output();
  if (!success) throw new Error(`cannot make FIFOs at ${path}`);
  const holders = [there, back].map((each) => Deno.openSync(each, { read: true, write: true }));
  const writes = Deno.openSync(there, { write: true });
  // A thread that waits for a FIFO keeps it open, whoever closes it. A process can be ended.
  const args = ["-c", PASS_ON, "sh", back];
  const cat = new Deno.Command("sh", { args, stdin: "null", stdout: "piped" }).spawn();
  const reads = cat.stdout.getReader();
  // A FIFO that nobody has open to read breaks under who writes to it: the testee is told of this
  // one when the other process has it open, however late that has started.
  await reads.read();
  // As long as the kit holds the testee's ends, it does not see that the testee closes them.
  let isHeld = true;
  const letGo = () => {
    if (isHeld) holders.forEach((each) => each.close());
    isHeld = false;
  };
  let isOver = false;
  const deaf = async () => {
    if (!isOver) cat.kill("SIGKILL");
    isOver = true;
    await cat.status; // until then the pipe has a reader
  };
  cat.status.then(() => isOver = true);
  let isEnded = false;
  const wire: Wire = {
    async read() {
      const { value } = await reads.read();
      letGo(); // who has written has opened both ends
      return value;
    },
    write: (bytes) => writeAll(writes, bytes),
    end() {
      if (!isEnded) writes.close();
      isEnded = true;
      return Promise.resolve();
    },
    deaf,
    kill() {
      letGo();
      void deaf();
      if (!isEnded) writes.close();
      isEnded = true;
    },
  };
  const transport: Transport = { transport: "fifo", path: there, path_out: back };
  return { transport, wire: Promise.resolve(wire), close: letGo };
}

// Stands between two testees and hands their bytes on: as they come, in pieces, late, changed, or
// not at all.

/** What becomes of the bytes of the first testee from this one on. */
export interface Damage {
  /**
   * `end`: they end here, while the other way goes on. `break`: the connection is no more.
   * `stop`: nothing comes any more, and nobody says so. `change`: this byte is another one.
   * `insert`: some come that nobody has sent.
   */
  kind: "end" | "break" | "stop" | "change" | "insert";
  at: number;
}

/** How bytes are handed on. */
export interface RelayPlan {
  damage?: Damage;
  /** Cuts into pieces of a seed, some of them late. */
  pieces?: number;
}

/** Bytes that are handed on at once, where they are cut. */
const PIECE_SIZE = 97;
const INSERTED = 23;

/** Two wires that are joined. */
export class Relay {
  /** All that the first testee has sent, before any damage. */
  readonly seen: Uint8Array[] = [];
  /** Both ways have ended, or are given up. */
  readonly done: Promise<unknown>;
  readonly #wires: readonly [Wire, Wire];
  #size = 0;
  /** Bytes that have been handed on, both ways. */
  handed = 0;
  #isOver = false;

  constructor(first: Wire, second: Wire, plan: RelayPlan = {}) {
    this.#wires = [first, second];
    const { pieces } = plan;
    const cut = (seed: number) => pieces === undefined ? undefined : new Random(seed);
    this.done = Promise.all([
      this.#pump(first, second, cut(pieces ?? 1), plan.damage),
      this.#pump(second, first, cut((pieces ?? 1) + 1), undefined),
    ]);
  }

  /** Gives both connections up. */
  async close(): Promise<void> {
    this.#isOver = true;
    for (const wire of this.#wires) wire.kill();
    await this.done;
  }

  async #pump(
    from: Wire,
    to: Wire,
    random: Random | undefined,
    damage: Damage | undefined,
  ): Promise<void> {
    for (let bytes; (bytes = await from.read()) !== undefined;) {
      if (this.#isOver) return;
      let rest: Uint8Array | undefined = bytes;
      if (damage !== undefined) {
        this.seen.push(bytes);
        const at = damage.at - this.#size;
        this.#size += bytes.length;
        if (at < bytes.length) {
          rest = await this.#damage(damage, bytes, Math.max(0, at), to, at < 0);
        }
      }
      if (rest !== undefined) await this.#hand(rest, to, random);
    }
    const isStopped = damage !== undefined && !isPassing(damage) && this.#size > damage.at;
    if (!isStopped) await to.end();
  }

  /** Does it, or has done it; returns what is still to be handed on. */
  async #damage(
    damage: Damage,
    bytes: Uint8Array,
    at: number,
    to: Wire,
    isDone: boolean,
  ): Promise<Uint8Array | undefined> {
    if (isDone) return isPassing(damage) ? bytes : undefined;
    await this.#hand(bytes.subarray(0, at), to, undefined);
    const random = new Random(damage.at + 1);
    switch (damage.kind) {
      case "end":
        return void await to.end();
      case "break":
        this.#isOver = true;
        for (const wire of this.#wires) wire.kill();
        return undefined;
      case "stop":
        return undefined;
      case "change":
        bytes[at]! ^= 1 + random.next() % 255;
        return bytes.subarray(at);
      case "insert": {
        const noise = Uint8Array.from({ length: INSERTED }, () => random.next() >>> 9);
        await this.#hand(noise, to, undefined);
        return bytes.subarray(at);
      }
    }
  }

  async #hand(bytes: Uint8Array, to: Wire, random: Random | undefined): Promise<void> {
    if (random === undefined) {
      await to.write(bytes);
      this.handed += bytes.length;
      return;
    }
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + 1 + random.next() % PIECE_SIZE);
      at += piece.length;
      await to.write(piece);
      this.handed += piece.length;
      if (random.next() % 16 === 0) await sleep(random.next() % 3);
    }
  }
}

/** Whether bytes are handed on after it. */
function isPassing({ kind }: Damage): boolean {
  return kind === "change" || kind === "insert";
}
