/**
 * All scripts about segments in files.
 *
 * @module
 */

import * as system from "../race/system.ts";
import { ATTACHED, CLOSED, drained, VACANT } from "../../reference/builder.ts";
import { buildSegment, failed, recordAt } from "../../reference/encode.ts";
import { fieldOf, limitOf, valueOf } from "../../reference/layout.ts";
import { differentBytes } from "../../static/difference.ts";
import type { Read } from "../../static/driver.ts";
import type { Arena } from "../arena.ts";
import { controlWord } from "../peer.ts";
import { type KitCase, Wrong } from "../verdict.ts";
import { demand, expect, fileCase, type FilePlace, type FileScript, GEOMETRY } from "./files.ts";
import { image, type Opened, type PeerFile } from "./files.ts";
import { rest, settles } from "./watch.ts";

// Scripts about files that are made: when their name is there, what is reserved, and which files
// may be replaced.

const READY = "[segment.file_ready]";
const LEFT = "[segment.file_left]";
const REPLACE = "[segment.file_replace]";
/** Files that are seen sharply when they get their name. */
const SHARP = 8;
const IN_TIME_MS = 60;
const VAIN_MS = 100;
const FAILED = valueOf("endpoint_state", "failed");
/** Where a file lies whose bytes are not reserved, each of these counts. */
const BLOCK_SIZE = 512;

const LETTER = "a letter to somebody, which is longer than a header of 128 bytes. ".repeat(5);

const FILE_CREATE_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_ready",
    about: "Whoever finds the name finds a segment that is ready, with its creator in it.",
    clauses: ["segment.file_ready", "segment.file_lock"],
    play: ready,
  },
  {
    id: "scripted/file_space",
    about: "All bytes of a new file are reserved, and nobody else may access it.",
    clauses: ["segment.file_space", "segment.file_own"],
    play: space,
  },
  {
    id: "scripted/file_short",
    about: "A file is shorter than its segment, or has holes in it.",
    clauses: ["segment.check", "segment.file_open"],
    play: short,
  },
  {
    id: "scripted/file_left",
    about: "What nobody uses any more is replaced by another file, and an empty one too.",
    clauses: ["segment.file_replace", "segment.file_ready"],
    play: left,
  },
  {
    id: "scripted/file_foreign",
    about: "A file that never was a segment is refused, and stays as it is.",
    clauses: ["segment.file_replace", "segment.file_left"],
    play: foreign,
  },
  {
    id: "scripted/file_live",
    about: "A file that somebody uses is used, or refused, and never replaced.",
    clauses: ["segment.file_left", "segment.same_geometry", "segment.file_lock"],
    play: live,
  },
  {
    id: "scripted/file_left_header",
    about: "Who replaces a file waits for its header, and leaves the file alone meanwhile.",
    clauses: ["segment.file_left", "segment.file_replace", "segment.file_wait"],
    play: leftHeader,
  },
  {
    id: "scripted/file_left_moved",
    about: "The file is replaced while somebody waits to replace it: the new one is used.",
    clauses: ["segment.file_left"],
    play: leftMoved,
  },
];

async function ready(place: FilePlace): Promise<string | void> {
  place.slowNames();
  const isSeen = await place.often(SHARP, async (name) => {
    const path = place.path(name);
    let end: Opened | undefined;
    const seen = await place.watching({ look: "named", path, endpoint: 0 }, async () => {
      end = await place.open("create", 0, { path }).ready(READY);
    });
    demand(seen !== undefined, `${READY} there is no file at the path`);
    requireReady(seen!.start!);
    demand(seen!.isLocked, "[segment.file_lock] the name was there before the creator's lock");
    await end!.drop();
    return seen;
  });
  if (!isSeen) return "the kit was never there when the file got its name";
}

/** Throws unless these bytes, found as soon as the name was there, are of a segment in use. */
function requireReady(start: Uint8Array): void {
  const size = recordAt(1);
  demand(start.length === size, `${READY} the name was there with ${start.length} bytes`);
  // Nothing of what a creator may choose.
  const must = start.slice();
  const wanted = image();
  for (const name of ["magic", "ready", "version_major", "size", "endpoint_count"]) {
    const { offset, size } = fieldOf("segment_header", name);
    must.set(wanted.subarray(offset, offset + size), offset);
  }
  must[recordAt(0) + fieldOf("endpoint_record", "state").offset] = ATTACHED;
  const fact = differentBytes(start, must);
  if (fact === undefined) return;
  throw new Wrong(`${READY} the name was there before all was ready:${fact}`, start, must);
}

async function space(place: FilePlace): Promise<void> {
  const capacity = 1 << 16;
  const geometry = { endpoints: 2, channels: [{ ...GEOMETRY.channels[0]!, capacity }] };
  const end = await place.open("create", 0, { geometry }).ready("[segment.file_space]");
  const { size, blocks, mode } = Deno.statSync(place.path());
  demand(size > capacity, `[segment.file_space] the file has ${size} bytes`);
  const reserved = blocks! * BLOCK_SIZE;
  demand(reserved >= size, `[segment.file_space] ${reserved} of ${size} bytes are reserved`);
  const others = mode! & 0o077;
  demand(others === 0, `[segment.file_own] the file has the mode ${(mode! & 0o777).toString(8)}`);
  await end.drop();
}

async function short(place: FilePlace): Promise<void> {
  const whole = image();
  for (const size of [0, 255, whole.length - 1, whole.length - 128]) {
    const file = place.put(whole.subarray(0, size), `${size}`);
    file.lockRecord(0);
    const what = `[segment.check] a file of ${size} bytes with a segment of ${whole.length}`;
    await place.expect("segment.size", what, "attach", 1, { path: file.path });
  }
  const path = place.path("sparse");
  // All that is not 0 stands in the first kilobyte: the rest is a hole.
  Deno.writeFileSync(path, whole.subarray(0, 1024), { mode: 0o600 });
  Deno.truncateSync(path, whole.length);
  place.look(path).lockRecord(0);
  await place.expect("ok", "[segment.file_open] a file with holes", "attach", 1, { path });
}

async function left(place: FilePlace): Promise<void> {
  const lost = FAILED + 256; // with a reason, whichever
  const images: [string, Uint8Array][] = [
    ["an empty file", new Uint8Array(0)],
    ["nothing but a magic", new TextEncoder().encode("MILLRACE")],
    ["both have closed", image([CLOSED, CLOSED])],
    ["both have died", image([ATTACHED, ATTACHED])],
    ["nobody came, one failed", image([lost, VACANT])],
  ];
  for (const [what, bytes] of images) {
    const path = place.path(what);
    const old = place.put(bytes, what);
    const end = await place.open("create", 0, { path }).ready(`${REPLACE} ${what}`);
    demand(!old.hasName(), `${REPLACE} ${what}: the file was not replaced`);
    const found = place.look(path);
    demand(found.state(0) === ATTACHED, `${REPLACE} ${what}: the creator is not in the new file`);
    if (bytes.length > 8) {
      const fact = differentBytes(old.bytes(), bytes);
      demand(fact === undefined, `${REPLACE} ${what}: the old file has changed${fact}`);
    }
    await end.drop();
  }
}

async function foreign(place: FilePlace): Promise<void> {
  for (const text of ["M", "MILLRAC", "millrace", `\0${"x".repeat(300)}`, LETTER]) {
    const bytes = new TextEncoder().encode(text);
    const path = place.path(`${text.length}`);
    const file = place.put(bytes, `${text.length}`);
    const what = `a file that begins with ${JSON.stringify(text.slice(0, 8))}`;
    await place.expect("segment.file", `${LEFT} ${REPLACE} ${what}`, "create", 0, { path });
    demand(file.hasName(), `${LEFT} ${what} was removed`);
    const fact = differentBytes(Deno.readFileSync(path), bytes);
    demand(fact === undefined, `${LEFT} ${what} has changed${fact}`);
  }
}

async function live(place: FilePlace): Promise<void> {
  const file = place.putLive();
  const other = { endpoints: 2, channels: [{ ...GEOMETRY.channels[0]!, capacity: 1024 }] };
  const more = { geometry: other };
  const what = "[segment.same_geometry] in use with another geometry";
  await place.expect("segment.geometry", what, "create", 1, more);
  demand(file.hasName(), `${LEFT} a file that is in use was removed for another geometry`);
  await place.expect("segment.endpoint", `${LEFT} an endpoint that is taken`, "create", 0);
  demand(file.hasName(), `${LEFT} a file that is in use was removed for its creator's endpoint`);
  const end = await place.open("create", 1).ready(`${LEFT} the same geometry`);
  demand(file.hasName(), `${LEFT} a file that is in use was replaced`);
  file.stateIs(LEFT, 1, ATTACHED);
  file.stateIs(LEFT, 0, ATTACHED);
  await end.drop();
}

async function leftHeader(place: FilePlace): Promise<void> {
  const old = place.put(image([CLOSED, CLOSED]));
  old.lockHeader();
  const vain = { timeoutMs: VAIN_MS };
  await place.expect("wait.timeout", `${LEFT} its header is locked`, "create", 0, vain);
  demand(old.hasName(), `${LEFT} a file was removed though its header was locked`);
  const end = place.open("create", 0);
  await rest(IN_TIME_MS);
  const hasWaited = !end.isThere && old.hasName();
  demand(hasWaited, `${LEFT} it did not wait for the lock on the header`);
  old.unlockHeader();
  await end.ready(`${REPLACE} its header is free again`);
  demand(!old.hasName(), `${REPLACE} the file was not replaced`);
  await end.drop();
}

async function leftMoved(place: FilePlace): Promise<void> {
  const old = place.put(image([CLOSED, CLOSED]));
  old.lockHeader();
  const end = place.open("create", 1);
  await rest(IN_TIME_MS / 2);
  const file = place.putLive("next");
  Deno.renameSync(file.path, old.path);
  old.unlockHeader();
  await end.ready(`${LEFT} another was faster`);
  demand(file.hasName(old.path), `${LEFT} it removed the file of whoever was faster`);
  file.stateIs(LEFT, 1, ATTACHED);
  await end.drop();
}

// Scripts about the lock that says that the owner of an endpoint lives: who has it, from when until
// when, and what comes of its end.

const LOCK = "[segment.file_lock]";
const DEAD = "[segment.file_dead]";
const LOST = failed("peer.lost");
/** How long a call may wait: far longer than anything that is to end it. */
const LONG_MS = 5_000;
/** A death is found at the end of a slice that begins after it, or that was under way. */
const FOUND_MS = 2 * limitOf("wait_slice_ms") + 100;
const TRIES = 3;
/** Times that an endpoint is seen sharply when it is taken, and when it is given up. */
const LOCK_SHARP = 6;

const FILE_LOCK_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_lock",
    about: "The record is locked before its state is attached, and no longer than it is open.",
    clauses: ["segment.file_lock"],
    play: locked,
  },
  {
    id: "scripted/file_taken",
    about: "An endpoint is vacant, and its record is locked: it is somebody's.",
    clauses: ["segment.file_lock", "segment.file_open"],
    play: taken,
  },
  {
    id: "scripted/file_dead",
    about: "A peer that has attached and whose record nobody locks is marked as lost.",
    clauses: ["segment.file_dead", "wait.liveness", "segment.state_reason"],
    play: dead,
  },
  {
    id: "scripted/file_dies",
    about: "A peer dies while a reader or a writer waits: found within a slice.",
    clauses: ["segment.file_dead", "wait.liveness", "wait.slice", "wait.slice_short"],
    play: dies,
  },
  {
    id: "scripted/file_lives",
    about: "A peer that lives, is vacant, or has closed is not marked.",
    clauses: ["segment.file_dead", "wait.liveness"],
    play: lives,
  },
  {
    id: "scripted/file_vacate_locked",
    about:
      "A peer that has closed, or was marked, is not vacated while its record is locked; once " +
      "that is free, it is.",
    clauses: ["segment.vacate_dead"],
    mayDecline: ["vacating"],
    play: vacateLocked,
  },
];

async function locked(place: FilePlace): Promise<string | void> {
  for (const kind of ["attach", "create"] as const) {
    const isSeen = await place.often(
      LOCK_SHARP,
      (name) => lockedOnce(place, kind, `${kind} ${name}`),
    );
    if (!isSeen) return "the kit was never there when an endpoint was taken and given up";
  }
}

/** Takes an endpoint and gives it up; says what was seen last, if both were seen sharply. */
async function lockedOnce(place: FilePlace, kind: "attach" | "create", name: string) {
  const file = place.putLive(name);
  const [path, endpoint] = [file.path, 1];
  let end: Opened | undefined;
  const first = await place.watching({ look: "attached", path, endpoint }, async () => {
    end = await place.open(kind, endpoint, { path }).ready(LOCK);
  });
  const isLate = first?.isLocked === false;
  demand(!isLate, `${LOCK} ${kind}: the state was attached before the record was locked`);
  demand(file.isRecordLocked(1), `${LOCK} ${kind}: the record is not locked`);
  demand(file.state(1) === ATTACHED, `${LOCK} ${kind}: the state is not attached`);
  const last = await place.watching({ look: "unlocked", path, endpoint }, () => end!.drop());
  const isEarly = last?.isAttached === true;
  demand(!isEarly, `${LOCK} ${kind}: the record was unlocked before the state was closed`);
  const isKept = file.isRecordLocked(1);
  demand(!isKept, `${LOCK} ${kind}: the record is still locked, and all is closed`);
  file.stateIs("[pipe.close]", 1, CLOSED);
  return first?.isSharp ? last : undefined;
}

async function taken(place: FilePlace): Promise<void> {
  const file = place.putLive();
  file.lockRecord(1);
  for (const kind of ["attach", "create"] as const) {
    await place.expect("segment.endpoint", `${LOCK} its record is locked`, kind, 1);
    file.stateIs(LOCK, 1, VACANT);
    demand(file.hasName(), `${LOCK} ${kind}: the file was removed`);
    demand(!file.isHeaderLocked(), `[segment.file_open] ${kind}: it has kept the header`);
  }
  file.unlockRecord(1);
  await place.expect("ok", `${LOCK} its record is free again`, "attach", 1);
}

/** The reader and the writer of the pipe, each with the kit as its peer. */
const ROLES = [{ own: 1, peer: 0 }, { own: 0, peer: 1 }] as const;

/** A file in which only the peer has attached, and its lock. */
function putPeer(place: FilePlace, peer: number, name: string, state = ATTACHED): PeerFile {
  const file = place.put(image(peer === 0 ? [state, VACANT] : [VACANT, state]), name);
  file.lockRecord(peer);
  return file;
}

/** What waits for the peer: a read, or a write for which there is no room. */
async function waitFor(end: Opened, own: number, ms: number): Promise<Read> {
  if (own === 1) return await end.session.read(ms);
  while (await end.session.write({ count: 80 }, false) === "ok");
  const answer = await end.session.write({ count: 80 }, true, ms);
  return typeof answer === "string" ? { end: answer } : { end: answer.code, reason: answer.reason };
}

const lost = drained([], "peer.failed", "peer.lost");

async function dead(place: FilePlace): Promise<void> {
  for (const { own, peer } of ROLES) {
    const file = putPeer(place, peer, `${own}`);
    const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
    file.unlockRecord(peer);
    expect(await waitFor(end, own, LONG_MS), lost, `${DEAD} endpoint ${own}, whose peer is dead`);
    file.stateIs(DEAD, peer, LOST);
    await end.drop();
  }
}

async function dies(place: FilePlace): Promise<void> {
  for (const { own, peer } of ROLES) {
    let isSoon = false;
    for (let attempt = 0; attempt < TRIES && !isSoon; attempt++) {
      const file = putPeer(place, peer, `${own} ${attempt}`);
      const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
      const waiting = waitFor(end, own, LONG_MS);
      waiting.catch(() => {});
      await asleep(file, own);
      file.unlockRecord(peer);
      isSoon = await settles(waiting, FOUND_MS);
      expect(await waiting, lost, `${DEAD} endpoint ${own}, whose peer dies`);
      file.stateIs(DEAD, peer, LOST);
      await end.drop();
    }
    demand(isSoon, `[wait.slice] endpoint ${own}: in every try after more than ${FOUND_MS} ms`);
  }
}

/** Waits until somebody asks to be rung, as long as those who poll may take not to. */
async function asleep(file: PeerFile, own: number): Promise<void> {
  const wants = controlWord(file, 0, own === 1 ? "reader_wants" : "writer_wants");
  const until = performance.now() + 100;
  while (Atomics.load(file.words(), wants) === 0 && performance.now() < until) await rest(1);
}

async function lives(place: FilePlace): Promise<void> {
  const ms = FOUND_MS - 50;
  for (const { own, peer } of ROLES) {
    const timedOut = drained([], own === 1 ? "nothing" : "wait.timeout");
    const file = putPeer(place, peer, `${own}`);
    const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
    expect(await waitFor(end, own, ms), timedOut, `${DEAD} endpoint ${own}, whose peer lives`);
    file.stateIs(DEAD, peer, ATTACHED);
    file.setState(peer, CLOSED);
    file.unlockRecord(peer);
    const closed = drained([], "peer.closed");
    expect(await waitFor(end, own, ms), closed, `${DEAD} endpoint ${own}, whose peer has closed`);
    file.stateIs(DEAD, peer, CLOSED);
    await end.drop();
  }
  const file = place.put(image([VACANT, VACANT]), "vacant");
  const end = await place.open("attach", 1, { path: file.path }).ready(DEAD);
  const nothing = drained([], "nothing");
  expect(await waitFor(end, 1, ms), nothing, `${DEAD} a reader whose writer has not come`);
  file.stateIs(DEAD, 0, VACANT);
  await end.drop();
}

async function vacateLocked(place: FilePlace): Promise<void> {
  const VACATES = "[segment.vacate_dead]";
  for (const { own, peer } of ROLES) {
    for (const state of [CLOSED, LOST]) {
      const name = `${own} ${state}`;
      const file = putPeer(place, peer, name);
      const end = await place.open("attach", own, { path: file.path }).ready(VACATES);
      file.setState(peer, state);
      const of = `endpoint ${own}, whose peer is in state ${state}`;
      for (let time = 0; time < 2; time++) {
        const got = await end.session.vacate();
        expect(got, "refused", `${VACATES} ${of}, and locked`);
        file.stateIs(VACATES, peer, state);
      }
      file.unlockRecord(peer);
      expect(await end.session.vacate(), "ok", `${VACATES} ${of}, and locked by nobody`);
      file.stateIs("[segment.vacate_state]", peer, VACANT + (1 << 8));
      await end.drop();
    }
  }
}

// Scripts about which files are opened, and when: whose they are, and who has the header.

const OWN = "[segment.file_own]";
const OPEN = "[segment.file_open]";
const WAIT = "[segment.file_wait]";
/** What others than the owner may do to a file: each bit of it is too much. */
const OPEN_MODES = [0o640, 0o620, 0o610, 0o604, 0o602, 0o601];
const NOBODY = 65_534;
const PATIENCE_MS = 8_000;
/** Openings that are seen sharply: a fault may show for less time than a look takes. */
const OPEN_SHARP = 12;

const FILE_OPEN_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_missing",
    about: "A path at which there is no file is refused, and nothing is made there.",
    clauses: ["segment.file_missing"],
    play: missing,
  },
  {
    id: "scripted/file_link",
    about: "A symbolic link in the last part of a path is refused, and one before it is not.",
    clauses: ["segment.file_own"],
    play: links,
  },
  {
    id: "scripted/file_kind",
    about: "A folder, a named pipe and a socket are refused, and nobody waits for their other end.",
    clauses: ["segment.file_own"],
    play: kinds,
  },
  {
    id: "scripted/file_mode",
    about: "A file that anybody else may read, write or run is refused.",
    clauses: ["segment.file_own"],
    play: modes,
  },
  {
    id: "scripted/file_user",
    about: "A file of another user is refused.",
    clauses: ["segment.file_own"],
    play: users,
  },
  {
    id: "scripted/file_header",
    about: "Who opens a file whose header is locked waits, and gets in when it is free.",
    clauses: ["segment.file_open", "segment.file_wait", "segment.file_lock"],
    play: header,
  },
  {
    id: "scripted/file_header_deadline",
    about: "The header stays locked: its time is up, and not before.",
    clauses: ["segment.file_wait", "wait.deadline"],
    play: deadline,
  },
  {
    id: "scripted/file_header_at_once",
    about: "Who does not want to wait tries once: it gets in, or its time is up at once.",
    clauses: ["segment.file_wait"],
    play: atOnce,
  },
  {
    id: "scripted/file_replaced",
    about: "The file is replaced while somebody waits for its header: it gets into the new one.",
    clauses: ["segment.file_open"],
    play: replaced,
  },
  {
    id: "scripted/file_header_held",
    about: "Whoever gives the header back has its record.",
    clauses: ["segment.file_open", "segment.file_lock"],
    play: held,
  },
];

/** Both ways to a file that is there. */
const BOTH = ["attach", "create"] as const;

async function missing(place: FilePlace): Promise<void> {
  const removed = place.putLive("removed");
  Deno.removeSync(removed.path);
  for (const name of ["nothing", "removed", "no folder/nothing"]) {
    const what = `[segment.file_missing] no file at ${name}`;
    await place.expect("segment.missing", what, "attach", 1, { path: place.path(name) });
  }
  const isEmpty = Deno.readDirSync(place.folder).next().done === true;
  demand(isEmpty, "[segment.file_missing] something was made where there was nothing");
  removed.stateIs("[segment.file_missing]", 1, VACANT);
}

async function links(place: FilePlace): Promise<void> {
  const file = place.putLive("target");
  const path = place.path("link");
  Deno.symlinkSync(file.path, path);
  for (const kind of BOTH) {
    await place.expect("segment.file", `${OWN} a symbolic link`, kind, 1, { path });
  }
  file.stateIs(OWN, 1, VACANT);
  const dangling = place.path("dangling");
  Deno.symlinkSync(place.path("nothing"), dangling);
  await place.expect("segment.file", `${OWN} a link to nothing`, "create", 1, { path: dangling });
  const names = [...Deno.readDirSync(place.folder)].map(({ name }) => name);
  demand(!names.includes("nothing"), `${OWN} a file was made behind a symbolic link`);
  Deno.symlinkSync(place.folder, place.path("folder"));
  const behind = { path: place.path("folder/target") };
  await place.expect("ok", `${OWN} a link to the folder`, "attach", 1, behind);
}

async function kinds(place: FilePlace): Promise<void> {
  const [folder, pipe, socket] = ["folder", "pipe", "socket"].map((name) => place.path(name));
  Deno.mkdirSync(folder!, { mode: 0o700 });
  system.makePipe(pipe!);
  using _listener = Deno.listen({ transport: "unix", path: socket! });
  Deno.chmodSync(socket!, 0o600);
  for (const [what, path] of Object.entries({ "a folder": folder!, "a pipe": pipe! })) {
    for (const kind of BOTH) {
      await place.expect("segment.file", `${OWN} ${what}`, kind, 1, { path });
    }
  }
  for (const kind of BOTH) {
    await place.expect("segment.file", `${OWN} a socket`, kind, 1, { path: socket! });
  }
}

async function modes(place: FilePlace): Promise<void> {
  const file = place.putLive();
  for (const mode of OPEN_MODES) {
    Deno.chmodSync(file.path, mode);
    const what = `${OWN} a file of mode ${mode.toString(8)}`;
    for (const kind of BOTH) await place.expect("segment.file", what, kind, 1);
  }
  demand(file.hasName(), `${OWN} the file was removed`);
  file.stateIs(OWN, 1, VACANT);
  Deno.chmodSync(file.path, 0o600);
  await place.expect("ok", `${OWN} a file of mode 600`, "attach", 1);
}

async function users(place: FilePlace): Promise<string | void> {
  if (Deno.uid() !== 0) return "only root can give a file to another user";
  const file = place.putLive();
  Deno.chownSync(file.path, NOBODY, null);
  for (const kind of BOTH) {
    await place.expect("segment.file", `${OWN} a file of another user`, kind, 1);
  }
  demand(file.hasName(), `${OWN} the file was removed`);
  file.stateIs(OWN, 1, VACANT);
}

async function header(place: FilePlace): Promise<void> {
  for (const kind of BOTH) {
    const path = place.path(kind);
    const file = place.putLive(kind);
    file.lockHeader();
    const end = place.open(kind, 1, { path });
    await rest(IN_TIME_MS);
    const hasWaited = !end.isThere && file.state(1) === VACANT && !file.isRecordLocked(1);
    demand(hasWaited, `${OPEN} ${kind}: it did not wait for the lock on the header`);
    file.unlockHeader();
    await end.ready(`${OPEN} ${kind}, the header free again`);
    demand(file.state(1) === ATTACHED, `${OPEN} ${kind}: it is in another file`);
    demand(!file.isHeaderLocked(), `${OPEN} ${kind}: it has kept the header: nobody else gets in`);
    await end.drop();
  }
}

async function deadline(place: FilePlace): Promise<void> {
  const file = place.putLive();
  file.lockHeader();
  for (const kind of BOTH) {
    const { end, ms } = await vain(place, file, kind, VAIN_MS);
    const told = `${WAIT} ${kind}, told to wait for ${VAIN_MS} ms`;
    await place.settle(end, "wait.timeout", told);
    demand(ms >= VAIN_MS - 10, `${told}: it gave up after ${ms} ms`);
    file.stateIs(WAIT, 1, VACANT);
  }
}

async function atOnce(place: FilePlace): Promise<void> {
  for (const kind of BOTH) {
    const file = place.putLive(kind);
    file.lockHeader();
    const { end } = await vain(place, file, kind, 0);
    const told = `${WAIT} ${kind}, told not to wait`;
    await place.settle(end, "wait.timeout", told);
    file.stateIs(WAIT, 1, VACANT);
    file.unlockHeader();
    const free = { path: file.path, timeoutMs: 0 };
    await place.expect("ok", `${told}, the header free again`, kind, 1, free);
  }
}

/** The testee opens a file whose header stays locked; how long that took it. */
async function vain(
  place: FilePlace,
  file: PeerFile,
  kind: "attach" | "create",
  timeoutMs: number,
) {
  const begun = performance.now();
  const end = place.open(kind, 1, { path: file.path, timeoutMs });
  while (!end.isThere && performance.now() - begun < PATIENCE_MS) await rest(5);
  const ms = Math.round(performance.now() - begun);
  if (!end.isThere) file.unlockHeader();
  const still = `still waits after ${ms} ms`;
  demand(end.isThere, `${WAIT} ${kind}, told to wait for ${timeoutMs} ms: ${still}`);
  return { end, ms };
}

async function replaced(place: FilePlace): Promise<void> {
  for (const kind of BOTH) {
    const path = place.path(kind);
    const old = place.putLive(kind);
    old.lockHeader();
    const end = place.open(kind, 1, { path });
    await rest(IN_TIME_MS / 2);
    const file = place.putLive(`${kind} next`);
    Deno.renameSync(file.path, path);
    old.unlockHeader();
    await end.ready(`${OPEN} ${kind}, the file replaced`);
    const isOld = old.state(1) !== VACANT || old.isRecordLocked(1);
    demand(!isOld, `${OPEN} ${kind}: it is in the file that was replaced`);
    const isIn = file.state(1) === ATTACHED && file.isRecordLocked(1) && file.hasName(path);
    demand(isIn, `${OPEN} ${kind}: it is not in the file that is there now`);
    await end.drop();
  }
}

async function held(place: FilePlace): Promise<string | void> {
  // To check so many channels takes a while: that long it has the header, and not yet its record.
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const channels = Array.from({ length: limitOf("channel_count_max") }, () => ring);
  const { bytes } = buildSegment({ endpoints: 2, channels, states: [VACANT, ATTACHED] });
  const isSeen = await place.often(OPEN_SHARP, async (name) => {
    const file = place.put(bytes, name);
    file.lockRecord(1);
    const { path } = file;
    let end: Opened | undefined;
    // The kit takes both locks as soon as neither is there: from then on it cannot get in.
    const seen = await place.watching({ look: "header", path, endpoint: 0 }, async () => {
      end = place.open("attach", 0, { path });
      await end.answer;
    });
    demand(seen?.isLocked !== false, `${OPEN} it gave the header back before it had its record`);
    await place.settle(end!, "ok", OPEN);
    return seen;
  });
  if (!isSeen) return "the kit was never there when the header was given back";
}

// Scripts about sealed memory, which has no name: the kit makes it and keeps it open, and the
// testee opens the path of the kit's descriptor.

const HANDED = "[segment.file_handed]";
const { seal, shrink, grow } = system.SEALS;
const SEALED = seal | shrink | grow;
const SEALED_IN_TIME_MS = 5_000;
const SEALED_READY = fieldOf("segment_header", "ready").offset;

const FILE_SEALED_SCRIPTS: FileScript[] = [
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
    play: headerSealed,
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
function liveSealed(place: FilePlace, { path }: Handed): PeerFile {
  const file = place.look(path);
  file.lockRecord(0);
  return file;
}

async function handed(place: FilePlace): Promise<void> {
  // Only shrinking is asked for: another creator may seal less, or more.
  for (const seals of [SEALED, shrink]) {
    using memory = new Handed(image(), seals);
    const { path } = memory;
    const file = liveSealed(place, memory);
    const end = await place.open("attach", 1, { path }).ready(`${HANDED} sealed memory`);
    file.stateIs(HANDED, 1, ATTACHED);
    const isLocked = file.isRecordLocked(1) && !file.isHeaderLocked();
    demand(isLocked, `${HANDED} [segment.file_lock] in sealed memory its record is not locked`);
    const reading = end.session.read(SEALED_IN_TIME_MS);
    file.unlockRecord(0);
    const lost = drained([], "peer.failed", "peer.lost");
    expect(await reading, lost, `${HANDED} its peer dies`);
    await end.drop();
    demand(!file.isRecordLocked(1), `${HANDED} [segment.file_lock] the record is still locked`);
  }
}

async function headerSealed(place: FilePlace): Promise<void> {
  using memory = new Handed(image(), SEALED);
  const { path } = memory;
  const file = liveSealed(place, memory);
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
  unready[SEALED_READY] = 1;
  await refuse("memory that is not ready", new Handed(unready, SEALED), "segment.unready");
  const named = place.putLive();
  const fd = system.open(named.path);
  const file = { path: handedPath(fd) };
  await place.expect("segment.file", `${HANDED} a file with a name`, "attach", 1, file);
  named.stateIs(HANDED, 1, VACANT);
  system.close(fd);
  await place.expect("segment.missing", "[segment.file_missing] no descriptor", "attach", 1, file);
}

// Scripts about which files are in use, and which left over though somebody still has them: what
// counts is who could still meet whom.

/** In its low byte no state that there is. */
const INVALID = 7;
const MAJOR = fieldOf("segment_header", "version_major").offset;

const FILE_USE_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_left_client",
    about: "Nobody who still has the file can meet anybody there: it is replaced.",
    clauses: ["segment.file_left", "segment.file_replace"],
    play: client,
  },
  {
    id: "scripted/file_use",
    about: "Somebody who has the file can meet another, or is whom the creator wants to be.",
    clauses: ["segment.file_left", "segment.file_lock"],
    play: use,
  },
  {
    id: "scripted/file_use_alone",
    about: "Somebody has the file and no peers: it is in use, whatever else stands in it.",
    clauses: ["segment.file_left", "segment.same_geometry", "segment.check"],
    play: alone,
  },
];

/** A file: the states of its endpoints, whose records the kit has locked, and what is wanted. */
interface Held {
  states: [number, number];
  locked: number[];
  wants: number;
}

async function client(place: FilePlace): Promise<void> {
  const held: Record<string, Held> = {
    "the server has closed": { states: [CLOSED, ATTACHED], locked: [1], wants: 0 },
    "the server has failed": { states: [LOST, ATTACHED], locked: [1], wants: 0 },
    "the server has died": { states: [ATTACHED, ATTACHED], locked: [1], wants: 0 },
    "the server's state is invalid": { states: [INVALID, ATTACHED], locked: [1], wants: 0 },
    "the server has closed, and is there": { states: [CLOSED, ATTACHED], locked: [0, 1], wants: 0 },
    "a client is coming to nobody": { states: [CLOSED, VACANT], locked: [1], wants: 0 },
    "both have closed, and are there": { states: [CLOSED, CLOSED], locked: [0, 1], wants: 0 },
    "a server that has closed is there": { states: [CLOSED, VACANT], locked: [0], wants: 1 },
  };
  for (const [what, each] of Object.entries(held)) await replacedUse(place, what, each);
  const other = { ...GEOMETRY, channels: [{ ...GEOMETRY.channels[0]!, capacity: 1024 }] };
  const geometry = "the server has closed; of another geometry";
  await replacedUse(place, geometry, { states: [CLOSED, ATTACHED], locked: [1], wants: 0 }, other);
}

async function replacedUse(place: FilePlace, what: string, held: Held, geometry = GEOMETRY) {
  const old = put(place, what, held);
  const before = old.bytes();
  const { path } = old;
  const opened = place.open("create", held.wants, { path, geometry });
  const end = await opened.ready(`${REPLACE} ${what}`);
  demand(!old.hasName(), `${REPLACE} ${what}: the file was not replaced`);
  const fact = differentBytes(old.bytes(), before);
  demand(fact === undefined, `${REPLACE} ${what}: the old file has changed${fact}`);
  const found = place.look(path);
  found.stateIs(`${REPLACE} ${what}:`, held.wants, ATTACHED);
  found.stateIs(`${REPLACE} ${what}:`, 1 - held.wants, VACANT);
  await end.drop();
}

async function use(place: FilePlace): Promise<void> {
  const held: Record<string, Held> = {
    "its peer is expected": { states: [VACANT, ATTACHED], locked: [1], wants: 0 },
    "both are coming": { states: [VACANT, VACANT], locked: [1], wants: 0 },
  };
  for (const [what, each] of Object.entries(held)) {
    const file = put(place, what, each);
    const { path } = file;
    const end = await place.open("create", each.wants, { path }).ready(`${LEFT} ${what}`);
    demand(file.hasName(), `${LEFT} ${what}: a file in use was replaced`);
    file.stateIs(`${LEFT} ${what}:`, each.wants, ATTACHED);
    await end.drop();
  }
  const own: Record<string, Held> = {
    "who is wanted is there": { states: [CLOSED, ATTACHED], locked: [1], wants: 1 },
    "who is wanted is coming": { states: [CLOSED, VACANT], locked: [1], wants: 1 },
    "both are there": { states: [ATTACHED, ATTACHED], locked: [0, 1], wants: 0 },
  };
  for (const [what, each] of Object.entries(own)) {
    const file = put(place, what, each);
    const { path } = file;
    await place.expect("segment.endpoint", `${LEFT} ${what}`, "create", each.wants, { path });
    demand(file.hasName(), `${LEFT} ${what}: a file in use was replaced`);
  }
}

async function alone(place: FilePlace): Promise<void> {
  const states = [CLOSED, CLOSED, ATTACHED];
  const { bytes } = buildSegment({ endpoints: 3, channels: GEOMETRY.channels, states });
  const file = place.put(bytes, "alone");
  file.lockRecord(2);
  const what = `${LEFT} somebody without peers is there`;
  await place.expect("segment.geometry", what, "create", 0, { path: file.path });
  demand(file.hasName(), `${what}: the file was replaced`);
  // What is locked has an owner, also where a creator does not understand what it holds.
  const strange = image([CLOSED, ATTACHED]);
  strange[MAJOR] = 255;
  const other = place.put(strange, "strange");
  other.lockRecord(1);
  const version = `${LEFT} [segment.check] a file of another version, of which a record is locked`;
  await place.expect("segment.version", version, "create", 0, { path: other.path });
  demand(other.hasName(), `${version}: the file was replaced`);
}

function put(place: FilePlace, what: string, { states, locked }: Held) {
  const file = place.put(image(states), what);
  for (const endpoint of locked) file.lockRecord(endpoint);
  return file;
}

/** Scripts in which the kit is another process, at the same file. */
export const FILES: KitCase<Arena>[] = [
  ...FILE_OPEN_SCRIPTS,
  ...FILE_CREATE_SCRIPTS,
  ...FILE_USE_SCRIPTS,
  ...FILE_LOCK_SCRIPTS,
  ...FILE_SEALED_SCRIPTS,
].map(fileCase);
