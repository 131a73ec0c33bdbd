/**
 * Scripts about paths at which there is no file, or one that a process hands over.
 *
 * @module
 */

import { ATTACHED, VACANT } from "../../reference/builder.ts";
import * as system from "../system.ts";
import { demand, type FilePlace, type FileScript, image } from "./files.ts";

const MISSING = "[segment.file_missing]";
const HANDED = "[segment.file_handed]";

export const FILE_FIND_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_missing",
    about: "There is no file at a path, or no such folder; nothing is made there.",
    clauses: ["segment.file_missing"],
    play: missing,
  },
  {
    id: "scripted/file_handed",
    about:
      "Memory of the kit is opened by its descriptor, once its size is sealed, and not before.",
    clauses: ["segment.file_handed", "segment.file_lock"],
    play: handed,
  },
];

async function missing(place: FilePlace): Promise<void> {
  for (const name of ["nothing", "nothing/it"]) {
    const path = place.path(name);
    await place.expect("segment.missing", `${MISSING} ${name}`, "attach", 1, { path });
  }
  const names = [...Deno.readDirSync(place.folder)].map(({ name }) => name);
  demand(names.length === 0, `${MISSING} a file was made to be opened: ${names.join(", ")}`);
}

async function handed(place: FilePlace): Promise<string | void> {
  const fd = system.makeMemory();
  if (fd < 0) return "the system has no such memory";
  try {
    const path = `/proc/${Deno.pid}/fd/${fd}`;
    Deno.chmodSync(path, 0o600);
    Deno.writeFileSync(path, image());
    const file = place.look(path);
    file.lockRecord(0);
    const what = `${HANDED} memory whose size is not sealed`;
    await place.expect("segment.file", what, "attach", 1, { path });
    file.stateIs(HANDED, 1, VACANT);
    if (!system.sealSize(fd)) return "the system does not seal it";
    const end = await place.open("attach", 1, { path }).ready(`${HANDED} sealed memory`);
    demand(file.state(1) === ATTACHED, `${HANDED} it has attached to something else`);
    demand(file.isRecordLocked(1), `${HANDED} its record is not locked for others`);
    await end.drop();
  } finally {
    system.close(fd);
  }
}
