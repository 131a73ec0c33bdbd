/**
 * The static cases, as modules: so they come along wherever the kit is run from.
 *
 * @module
 */

import call from "../cases/call.json" with { type: "json" };
import codec from "../cases/codec.json" with { type: "json" };
import fanout from "../cases/fanout.json" with { type: "json" };
import frame from "../cases/frame.json" with { type: "json" };
import mailbox from "../cases/mailbox.json" with { type: "json" };
import pipe from "../cases/pipe.json" with { type: "json" };
import port from "../cases/port.json" with { type: "json" };
import property from "../cases/property.json" with { type: "json" };
import ring from "../cases/ring.json" with { type: "json" };
import segment from "../cases/segment.json" with { type: "json" };
import wait from "../cases/wait.json" with { type: "json" };
import type { Case, CaseFile } from "../reference/case.ts";
import { resolve } from "../static/load.ts";
import type { StaticCase } from "./static_level.ts";

/** All files of cases, in the order of the chapters. */
const FILES = [
  ...[segment, wait, frame, ring, mailbox, codec, pipe, port],
  ...[call, property, fanout],
] as unknown as CaseFile[];

/** All static cases, ready to be run. */
export function loadStaticCases(): StaticCase[] {
  const cases = new Map<string, Case>();
  for (const file of FILES) for (const entry of file.cases) cases.set(entry.id, entry);
  return [...cases.values()].map((entry) => {
    const { about, clauses } = entry;
    return { ...resolve(entry, cases), about, clauses };
  });
}
