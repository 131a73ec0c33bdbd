/**
 * What scripts about segments in files are written with: the testee opens or makes a file, and the
 * kit is another process at the same path, with locks and a mapping of its own.
 *
 * @module
 */

import * as system from "../race/system.ts";
import { ATTACHED, pipe, VACANT } from "../../reference/builder.ts";
import type { Optional, Result as Came } from "../../reference/case.ts";
import { recordAt } from "../../reference/encode.ts";
import { sizeOf } from "../../reference/layout.ts";
import { compare } from "../../static/difference.ts";
import type { Answer, Read } from "../../static/driver.ts";
import { answerOf, RemoteSession } from "../../static/remote.ts";
import type { Arena } from "../arena.ts";
import type { Connection } from "../connection.ts";
import { CONTROL, type Seen, type WatchOrder } from "../race/file_watcher.ts";
import { recordWord } from "../peer.ts";
import type { Opening } from "../protocol.ts";
import { type KitCase, Trouble, Wrong } from "../verdict.ts";
import { lacksBlocking, lacksScript, played, requireWord, throwProblems } from "./stage.ts";
import { rest } from "./watch.ts";

// Sees what holds at a file for microseconds only, by a thread that looks all the time.

const URL_OF_WATCHER = new URL("../race/file_watcher.ts", import.meta.url);
/** Within which the thread begins, and ends: it does nothing else. */
const PATIENCE_MS = 10_000;

/**
 * A thread that looks at files, one after the other. It has a processor of its own, as far as that
 * is in the kit's hands: the testee runs on the others meanwhile, or it would often run in place of
 * the thread that is to see it.
 */
class FileWatch {
  readonly #worker = new Worker(URL_OF_WATCHER, { type: "module" });
  readonly #testee: number;
  readonly #processors: number[];
  #control = new Int32Array(new SharedArrayBuffer(8));
  #seen: Promise<Seen | undefined> = Promise.resolve(undefined);

  /** `testee` is its first thread, which does what is looked at. */
  constructor(testee: number) {
    this.#testee = testee;
    this.#processors = system.processorsOf(testee);
    const others = this.#processors.slice(0, -1);
    if (others.length > 0) system.setProcessors(testee, others);
  }

  /** Begins to look, and returns when it does. */
  async begin(order: Omit<WatchOrder, "control" | "processor">): Promise<void> {
    const buffer = new SharedArrayBuffer(8);
    this.#control = new Int32Array(buffer);
    this.#seen = new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }) => resolve(data.seen);
      this.#worker.onerror = (event) => (event.preventDefault(), reject(new Error(event.message)));
    });
    const processor = this.#processors.at(-1) ?? 0;
    this.#seen.catch(() => {}); // it is asked for later, or not at all
    this.#worker.postMessage({ ...order, processor, control: buffer } satisfies WatchOrder);
    const deadline = performance.now() + PATIENCE_MS;
    while (Atomics.load(this.#control, CONTROL.begun) === 0) {
      if (performance.now() > deadline) throw new Error("the watching thread does not begin");
      await rest(0);
    }
  }

  /** Ends the looking; what was seen, if anything was. */
  async end(): Promise<Seen | undefined> {
    Atomics.store(this.#control, CONTROL.stop, 1);
    return await this.#seen;
  }

  close(): void {
    Atomics.store(this.#control, CONTROL.stop, 1);
    this.#worker.terminate();
    if (this.#processors.length > 0) system.setProcessors(this.#testee, this.#processors);
  }
}

/** A script about files. */
export interface FileScript {
  id: string;
  about: string;
  clauses: string[];
  /** Names of `may_decline`, as in the static cases. */
  mayDecline?: Optional[];
  /** Plays it, or says why the kit cannot here. */
  play(place: FilePlace): Promise<string | void>;
}

export function fileCase(script: FileScript): KitCase<Arena> {
  const { id, about, clauses, mayDecline = [], play } = script;
  return {
    id,
    about,
    clauses,
    declinedBy: (hello) =>
      lacksScript(hello, { role: "reader", mayDecline }) ??
        lacksScript(hello, { role: "writer" }) ??
        lacksBlocking(hello),
    async run(arena) {
      const place = new FilePlace(arena, await arena.connect(0));
      try {
        return played(await play(place));
      } catch (error) {
        await arena.kill(0); // in whatever state that is
        throw error;
      } finally {
        place.clear();
      }
    },
  };
}

const HEADER_SIZE = sizeOf("segment_header");
const RECORD_SIZE = sizeOf("endpoint_record");

/** The pipe of all these scripts: endpoint 0 writes, endpoint 1 reads. */
export const GEOMETRY = {
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity: 256, label: 0, start: 0 }],
};

/** The same as bytes, with these states: by default, only the writer has attached. */
export function image(states: number[] = [ATTACHED, VACANT]): Uint8Array {
  return pipe({ states }).bytes;
}

/** A folder of the testee and the kit, and what is in it. */
export class FilePlace {
  readonly connection: Connection;
  readonly folder: string;
  readonly #files: PeerFile[] = [];
  readonly #listeners: number[] = [];
  #watch: FileWatch | undefined;

  constructor(arena: Arena, connection: Connection) {
    this.connection = connection;
    this.folder = Deno.makeTempDirSync({ dir: arena.folder!, prefix: "files-" });
  }

  /** The path of a name. */
  path(name = "it"): string {
    return `${this.folder}/${name}`;
  }

  /** Makes a file of mode 0600 and opens it, as another process has it. */
  put(bytes: Uint8Array, name?: string): PeerFile {
    const path = this.path(name);
    Deno.writeFileSync(path, bytes, { mode: 0o600, createNew: true });
    return this.look(path);
  }

  /** A file whose writer, endpoint 0, is the kit, which lives. */
  putLive(name?: string, bytes: Uint8Array = image()): PeerFile {
    const file = this.put(bytes, name);
    file.lockRecord(0);
    return file;
  }

  /** Opens what is at a path. */
  look(path = this.path()): PeerFile {
    const file = new PeerFile(path);
    this.#files.push(file);
    return file;
  }

  /** The testee takes an endpoint of the file at a path, or makes the file; not waited for. */
  open(kind: "attach" | "create", endpoint: number, more: Partial<Order> = {}): Opened {
    const { path = this.path(), geometry = GEOMETRY, timeoutMs = 5_000 } = more;
    const role = endpoint === 0 ? "writer" : "reader";
    const handle = this.connection.newHandle();
    const answer = this.connection.send({
      command: "open",
      handle,
      carrier: "file",
      path,
      kind,
      ...(kind === "create" && { geometry }),
      role,
      endpoint,
      limit: 4096,
      calls: false,
      values: false,
      spin_us: 0,
      timeout_ms: timeoutMs,
    }, PATIENCE_MS + timeoutMs).then(answerOf);
    return new Opened(this.connection, handle, role, answer);
  }

  /** The same, waited for: it must come to this. `what` begins with the clause, in brackets. */
  async expect(must: string, what: string, ...order: Parameters<FilePlace["open"]>): Promise<void> {
    await this.settle(this.open(...order), must, `${what}: ${order[0]}`);
  }

  /** Waits for an answer, which must be this, and has the end dropped, if there is one. */
  async settle(end: Opened, must: string, what: string): Promise<void> {
    try {
      const got = await end.answer;
      expect(got, must, what);
      if (got === "ok") await end.drop();
    } catch (error) {
      // What it must refuse it may also break down of.
      if (error instanceof Trouble) error.during = `${what}, expected ${must}`;
      throw error;
    }
  }

  /**
   * Makes it take some tenths of a microsecond more for each listener, from when a name is there
   * until the call that gave it returns: the system tells each of them first. What somebody does
   * too late, after that call, is then seen.
   */
  slowNames(): void {
    for (let count = 0; count < LISTENERS; count++) {
      const fd = system.listen(this.folder);
      if (fd < 0) return;
      this.#listeners.push(fd);
    }
  }

  /** Looks without a pause while the testee does something; says what was seen. */
  async watching(
    order: Parameters<FileWatch["begin"]>[0],
    act: () => Promise<unknown>,
  ): Promise<Seen | undefined> {
    this.#watch ??= new FileWatch(this.connection.link.pid!);
    await this.#watch.begin(order);
    await act();
    return await this.#watch.end();
  }

  /**
   * Does something again and again, each time at another path, until it was seen sharply as often
   * as is wanted: on a machine that does other things, too, the looking thread often sleeps when
   * it matters. Returns whether it was seen at all.
   */
  async often(times: number, play: (name: string) => Promise<Seen | undefined>): Promise<boolean> {
    const deadline = performance.now() + OFTEN_MS;
    let sharp = 0;
    for (let index = 0; sharp < times && performance.now() < deadline; index++) {
      if ((await play(`${index}`))?.isSharp) sharp++;
    }
    return sharp > 0;
  }

  /** Gives everything back. */
  clear(): void {
    this.#watch?.close();
    for (const fd of this.#listeners) system.close(fd);
    for (const file of this.#files) file.release();
    Deno.removeSync(this.folder, { recursive: true });
  }
}

/** How to open a file. */
interface Order {
  path: string;
  geometry: Opening["geometry"];
  timeoutMs: number;
}

/** A user has 128 of them, unless the system says otherwise. */
const LISTENERS = 64;

/** How long something is done again and again, where it is never seen sharply. */
const OFTEN_MS = 2_000;

/** An end that the testee opens, or has opened. */
export class Opened {
  readonly answer: Promise<Answer>;
  readonly session: RemoteSession;
  readonly #connection: Connection;
  readonly #handle: number;
  #isThere = false;

  constructor(
    connection: Connection,
    handle: number,
    role: "reader" | "writer",
    answer: Promise<Answer>,
  ) {
    this.session = new RemoteSession(connection, handle, role);
    this.#connection = connection;
    this.#handle = handle;
    this.answer = answer.finally(() => this.#isThere = true);
    this.answer.catch(() => {}); // a script may fail before it comes to that
  }

  /** Whether the answer has come. */
  get isThere(): boolean {
    return this.#isThere;
  }

  /** Waits for the answer, which must be `ok`. */
  async ready(what: string): Promise<this> {
    expect(await this.answer, "ok", what);
    return this;
  }

  /** The testee gives it up, and goes on. */
  async drop(): Promise<void> {
    await this.#connection.must({ command: "drop", handle: this.#handle });
  }
}

/** Throws unless a call gave what it must. */
export function expect(got: Came | Read, must: Came, what: string): void {
  const came = typeof got === "object" && "item" in got ? { items: [got.item] } : listed(got);
  throwProblems(what, compare(came, must));
}

function listed(got: Came | Exclude<Read, { item: unknown }>): Came {
  return typeof got === "object" && "end" in got && !("items" in got) ? { items: [], ...got } : got;
}

/** Throws unless a fact holds; the text begins with a clause, in brackets. */
export function demand(holds: boolean, fact: string): void {
  if (!holds) throw new Wrong(fact);
}

/** A file as another process has it: its own open file description, and a mapping. */
export class PeerFile {
  readonly path: string;
  /** The number by which the file is known, whatever has its name by now. */
  readonly inode: number;
  readonly #fd: number;
  #mapping: system.Mapping | undefined;
  readonly #size: number;

  constructor(path: string) {
    this.path = path;
    this.#fd = system.open(path);
    if (this.#fd < 0) throw new Error(`cannot open ${path}`);
    const { size, ino } = Deno.statSync(path);
    this.#size = size;
    this.inode = ino!;
  }

  /** Whether it could lock the header. */
  lockHeader(): boolean {
    return system.lock(this.#fd, 0, HEADER_SIZE);
  }

  unlockHeader(): void {
    system.unlock(this.#fd, 0, HEADER_SIZE);
  }

  /** Whether the testee has the header. */
  isHeaderLocked(): boolean {
    return system.isLocked(this.#fd, 0, HEADER_SIZE);
  }

  /** Lives as this endpoint. */
  lockRecord(endpoint: number): void {
    const isTaken = system.lock(this.#fd, recordAt(endpoint), RECORD_SIZE);
    if (!isTaken) throw new Wrong(`[segment.file_lock] the record of ${endpoint} is locked`);
  }

  /** Goes, as a process that dies: its state stays. */
  unlockRecord(endpoint: number): void {
    system.unlock(this.#fd, recordAt(endpoint), RECORD_SIZE);
  }

  /** Whether the testee has this record. */
  isRecordLocked(endpoint: number): boolean {
    return system.isLocked(this.#fd, recordAt(endpoint), RECORD_SIZE);
  }

  /** The bytes, live. */
  words(): Int32Array {
    this.#mapping ??= new system.Mapping(this.#fd, this.#size);
    return new Int32Array(this.#mapping.buffer);
  }

  /** A copy of them. */
  bytes(): Uint8Array {
    const words = this.words();
    return new Uint8Array(words.buffer).slice();
  }

  /** The whole word `state` of an endpoint. */
  state(endpoint: number): number {
    return Atomics.load(this.words(), recordWord(endpoint, "state")) >>> 0;
  }

  setState(endpoint: number, state: number): void {
    Atomics.store(this.words(), recordWord(endpoint, "state"), state);
  }

  /** Throws unless the state of an endpoint is this. */
  stateIs(clause: string, endpoint: number, must: number): void {
    const offset = 4 * recordWord(endpoint, "state");
    requireWord(`${clause} state of ${endpoint}`, this.bytes(), offset, must);
  }

  /** Whether this file still has the name. */
  hasName(path: string = this.path): boolean {
    try {
      return Deno.lstatSync(path).ino === this.inode;
    } catch {
      return false;
    }
  }

  release(): void {
    this.#mapping?.release();
    system.close(this.#fd);
  }
}
