/**
 * Scripts about which files are in use, and which left over though somebody still has them: what
 * counts is who could still meet whom.
 *
 * @module
 */

import { ATTACHED, CLOSED, VACANT } from "../../reference/builder.ts";
import { buildSegment, failed } from "../../reference/encode.ts";
import { fieldOf } from "../../reference/layout.ts";
import { differentBytes } from "../../static/difference.ts";
import { demand, type FilePlace, type FileScript, GEOMETRY, image } from "./files.ts";

const LEFT = "[segment.file_left]";
const REPLACE = "[segment.file_replace]";
const LOST = failed("peer.lost");
/** In its low byte no state that there is. */
const INVALID = 7;
const MAJOR = fieldOf("segment_header", "version_major").offset;

export const FILE_USE_SCRIPTS: FileScript[] = [
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
  for (const [what, each] of Object.entries(held)) await replaced(place, what, each);
  const other = { ...GEOMETRY, channels: [{ ...GEOMETRY.channels[0]!, capacity: 1024 }] };
  const geometry = "the server has closed; of another geometry";
  await replaced(place, geometry, { states: [CLOSED, ATTACHED], locked: [1], wants: 0 }, other);
}

async function replaced(place: FilePlace, what: string, held: Held, geometry = GEOMETRY) {
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
