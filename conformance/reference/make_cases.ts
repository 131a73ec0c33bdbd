/**
 * Writes `conformance/cases/*.json` from the reference encoder.
 *
 * @module
 */

import type { Cases } from "./builder.ts";
import type { CaseFile } from "./case.ts";
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

/** Every file of cases and the text that it must hold, as `deno fmt` formats it. */
export async function makeFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const { noun, list } of makeCases()) {
    const file: CaseFile = { $schema: "../cases.schema.json", noun, cases: markOptional(list) };
    files.set(`${noun}.json`, await format(write(file, "")));
  }
  return files;
}

/** JSON of which what is small stands on one line. */
export function write(value: unknown, indent: string): string {
  const line = JSON.stringify(value);
  if (typeof value !== "object" || value === null || line.length + indent.length < 80) {
    return line;
  }
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const entries = Array.isArray(value)
    ? value.map((entry) => write(entry, deeper))
    : Object.entries(value).filter(([, entry]) => entry !== undefined)
      .map(([key, entry]) => `${JSON.stringify(key)}: ${write(entry, deeper)}`);
  return `${open}\n${entries.map((entry) => deeper + entry).join(",\n")}\n${indent}${close}`;
}

export async function format(text: string): Promise<string> {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--no-config", "--line-width", "100", "--ext", "json", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = process.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { success, stdout, stderr } = await process.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

if (import.meta.main) {
  for (const [name, text] of await makeFiles()) {
    await Deno.writeTextFile(new URL(name, FOLDER), text);
    console.log(`${name}: ${text.match(/^ {6}"id"/gm)?.length} cases`);
  }
}
