/**
 * Writes `conformance/cases/*.jsonl` from the reference encoder.
 *
 * @module
 */

import type { Cases } from "./builder.ts";
import { callCases } from "./nouns/call.ts";
import { codecCases } from "./nouns/codec.ts";
import { fanoutCases } from "./nouns/fanout.ts";
import { frameCases } from "./nouns/frame.ts";
import { mailboxCases } from "./nouns/mailbox.ts";
import { pipeCases } from "./nouns/pipe.ts";
import { portCases } from "./nouns/port.ts";
import { propertyCases } from "./nouns/property.ts";
import { ringCases } from "./nouns/ring.ts";
import { segmentCases } from "./nouns/segment.ts";
import { waitCases } from "./nouns/wait.ts";
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
