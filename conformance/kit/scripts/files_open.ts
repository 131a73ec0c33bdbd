/**
 * Scripts about which files are opened, and when: whose they are, and who has the header.
 *
 * @module
 */

import { ATTACHED, VACANT } from "../../reference/builder.ts";
import { buildSegment } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import * as system from "../system.ts";
import { demand, type FilePlace, type FileScript, type Opened } from "./files.ts";
import { rest } from "./watch.ts";

const OWN = "[segment.file_own]";
const OPEN = "[segment.file_open]";
const WAIT = "[segment.file_wait]";
/** What others than the owner may do to a file: each bit of it is too much. */
const OPEN_MODES = [0o640, 0o620, 0o610, 0o604, 0o602, 0o601];
const NOBODY = 65_534;
/** Long enough for a testee that does not wait to be done. */
const IN_TIME_MS = 60;
/** How long a testee is told to wait in vain, and how much longer the kit is patient. */
const VAIN_MS = 100;
const PATIENCE_MS = 8_000;
/** Openings that are seen sharply: a fault may show for less time than a look takes. */
const SHARP = 12;

export const FILE_OPEN_SCRIPTS: FileScript[] = [
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
    clauses: ["segment.file_open", "segment.file_wait", "wait.deadline"],
    play: deadline,
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
    await end.ready(`${WAIT} ${kind}, the header free again`);
    demand(file.state(1) === ATTACHED, `${OPEN} ${kind}: it is in another file`);
    demand(!file.isHeaderLocked(), `${OPEN} ${kind}: it has kept the header: nobody else gets in`);
    await end.drop();
  }
}

async function deadline(place: FilePlace): Promise<void> {
  const file = place.putLive();
  file.lockHeader();
  for (const kind of BOTH) {
    const begun = performance.now();
    const end = place.open(kind, 1, { timeoutMs: VAIN_MS });
    while (!end.isThere && performance.now() - begun < PATIENCE_MS) await rest(5);
    const ms = Math.round(performance.now() - begun);
    const told = `${WAIT} ${kind}, told to wait for ${VAIN_MS} ms`;
    if (!end.isThere) file.unlockHeader();
    demand(end.isThere, `${told}: still waits after ${ms} ms`);
    await place.settle(end, "wait.timeout", told);
    demand(ms >= VAIN_MS - 10, `${told}: it gave up after ${ms} ms`);
    file.stateIs(OPEN, 1, VACANT);
  }
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
  const isSeen = await place.often(SHARP, async (name) => {
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
