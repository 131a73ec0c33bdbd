/**
 * Scripts about sealed memory, which has no name: the kit makes it and keeps it open, and the
 * testee opens the path of the kit's descriptor.
 *
 * @module
 */

import { ATTACHED, drained, VACANT } from "../../reference/builder.ts";
import { fieldOf } from "../../reference/layout.ts";
import * as system from "../system.ts";
import { demand, expect, type FilePlace, type FileScript, image, type PeerFile } from "./files.ts";
import { settles } from "./watch.ts";

const HANDED = "[segment.file_handed]";
const { seal, shrink, grow } = system.SEALS;
const SEALED = seal | shrink | grow;
const IN_TIME_MS = 5_000;
const READY = fieldOf("segment_header", "ready").offset;

export const FILE_SEALED_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_handed",
    about: "Sealed memory is opened by the path of its creator's descriptor, and used as a file.",
    clauses: ["segment.file_handed", "segment.file_lock"],
    play: handed,
  },
  {
    id: "scripted/file_handed_header",
    about: "In sealed memory the header is waited for, and a record has one owner.",
    clauses: ["segment.file_handed", "segment.file_open", "segment.file_wait"],
    play: header,
  },
  {
    id: "scripted/file_handed_other",
    about: "What a descriptor leads to is refused: not sealed, of others, no file, nothing.",
    clauses: ["segment.file_handed", "segment.file_own", "segment.file_missing"],
    play: other,
  },
];

/** Memory of the kit's, with the path of its descriptor. */
class Handed implements Disposable {
  readonly fd: number;
  readonly path: string;

  constructor(bytes: Uint8Array, seals: number, mode = 0o600) {
    this.fd = system.makeMemory();
    this.path = handedPath(this.fd);
    Deno.chmodSync(this.path, mode);
    Deno.writeFileSync(this.path, bytes, { create: false });
    if (seals !== 0) system.seal(this.fd, seals);
  }

  [Symbol.dispose](): void {
    system.close(this.fd);
  }
}

function handedPath(fd: number): string {
  return `/proc/${Deno.pid}/fd/${fd}`;
}

/** Memory in which the kit is endpoint 0, and lives. */
function live(place: FilePlace, { path }: Handed): PeerFile {
  const file = place.look(path);
  file.lockRecord(0);
  return file;
}

async function handed(place: FilePlace): Promise<void> {
  // Only shrinking is asked for: another creator may seal less, or more.
  for (const seals of [SEALED, shrink]) {
    using memory = new Handed(image(), seals);
    const { path } = memory;
    const file = live(place, memory);
    const end = await place.open("attach", 1, { path }).ready(`${HANDED} sealed memory`);
    file.stateIs(HANDED, 1, ATTACHED);
    const isLocked = file.isRecordLocked(1) && !file.isHeaderLocked();
    demand(isLocked, `${HANDED} [segment.file_lock] in sealed memory its record is not locked`);
    const reading = end.session.read(IN_TIME_MS);
    file.unlockRecord(0);
    const lost = drained([], "peer.failed", "peer.lost");
    expect(await reading, lost, `${HANDED} its peer dies`);
    await end.drop();
    demand(!file.isRecordLocked(1), `${HANDED} [segment.file_lock] the record is still locked`);
  }
}

async function header(place: FilePlace): Promise<void> {
  using memory = new Handed(image(), SEALED);
  const { path } = memory;
  const file = live(place, memory);
  file.lockHeader();
  const vain = { path, timeoutMs: 20 };
  await place.expect("wait.timeout", `${HANDED} the header stays locked`, "attach", 1, vain);
  const end = place.open("attach", 1, { path });
  const isEarly = await settles(end.answer, 60);
  demand(!isEarly, `${HANDED} it did not wait for the lock on the header`);
  file.unlockHeader();
  await end.ready(`${HANDED} the header free again`);
  const taken = `${HANDED} an endpoint that is taken`;
  await place.expect("segment.endpoint", taken, "attach", 1, { path });
  await end.drop();
}

async function other(place: FilePlace): Promise<void> {
  const refuse = async (what: string, memory: Handed, must = "segment.file") => {
    using _memory = memory;
    await place.expect(must, `${HANDED} ${what}`, "attach", 1, { path: memory.path });
    const { path } = memory;
    const state = place.look(path).state(1);
    demand(state === VACANT, `${HANDED} ${what}: it has taken its endpoint`);
  };
  await refuse("memory that is not sealed", new Handed(image(), 0));
  await refuse("memory that may be made shorter", new Handed(image(), grow | seal));
  for (const mode of [0o640, 0o602]) {
    const what = `memory of mode ${mode.toString(8)}`;
    await refuse(what, new Handed(image(), SEALED, mode));
  }
  const unready = image();
  unready[READY] = 1;
  await refuse("memory that is not ready", new Handed(unready, SEALED), "segment.unready");
  const named = place.putLive();
  const fd = system.open(named.path);
  const file = { path: handedPath(fd) };
  await place.expect("segment.file", `${HANDED} a file with a name`, "attach", 1, file);
  named.stateIs(HANDED, 1, VACANT);
  system.close(fd);
  await place.expect("segment.missing", "[segment.file_missing] no descriptor", "attach", 1, file);
}
