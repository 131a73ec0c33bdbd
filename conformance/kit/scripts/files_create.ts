/**
 * Scripts about files that are made: when their name is there, what is reserved, and which files
 * may be replaced.
 *
 * @module
 */

import { ATTACHED, CLOSED, VACANT } from "../../reference/builder.ts";
import { recordAt } from "../../reference/encode.ts";
import { fieldOf, valueOf } from "../../reference/layout.ts";
import { differentBytes } from "../../static/difference.ts";
import { Wrong } from "../verdict.ts";
import { demand, type FilePlace, type FileScript, GEOMETRY, image } from "./files.ts";
import type { Opened } from "./files.ts";
import { rest } from "./watch.ts";

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

export const FILE_CREATE_SCRIPTS: FileScript[] = [
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
