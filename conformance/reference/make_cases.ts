/**
 * Writes `conformance/cases/*.jsonl` from the reference encoder.
 *
 * @module
 */

import type { Cases } from "./builder.ts";
import { callCases } from "./cases_call.ts";
import { codecCases } from "./cases_codec.ts";
import { fanoutCases } from "./cases_fanout.ts";
import { frameCases } from "./cases_frame.ts";
import { mailboxCases } from "./cases_mailbox.ts";
import { pipeCases } from "./cases_pipe.ts";
import { portCases } from "./cases_port.ts";
import { propertyCases } from "./cases_property.ts";
import { ringCases } from "./cases_ring.ts";
import { segmentCases } from "./cases_segment.ts";
import { waitCases } from "./cases_wait.ts";
import { markOptional } from "./optional.ts";

const FOLDER = new URL("../cases/", import.meta.url);

/** All cases, by noun. */
export function makeCases(): Cases[] {
  return [
    segmentCases(),
    waitCases(),
    frameCases(),
    ringCases(),
    mailboxCases(),
    propertyCases(),
    codecCases(),
    pipeCases(),
    portCases(),
    callCases(),
    fanoutCases(),
  ];
}

/** Every file of cases and the text that it must hold: a case a line. */
export function makeFiles(): Map<string, string> {
  return new Map(
    makeCases().map(({ noun, list }) => [`${noun}.jsonl`, toLines(markOptional(list))]),
  );
}

/** Each of the entries as JSON in a line of its own. */
export function toLines(entries: readonly unknown[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

if (import.meta.main) {
  for (const [name, text] of makeFiles()) {
    Deno.writeTextFileSync(new URL(name, FOLDER), text);
    console.log(`${name}: ${text.split("\n").length - 1} cases`);
  }
}
