/**
 * What the tests of the kit have in common: its command line, in a process of its own.
 *
 * @module
 */

import { Ajv2020 } from "ajv/2020";
import { fileURLToPath } from "node:url";
import type { Report } from "./kit/report.ts";

export const ROOT: string = fileURLToPath(new URL("../", import.meta.url));

/** What came of a run. */
export interface Run {
  code: number;
  output: string;
  errors: string;
}

/** Runs the command line of the kit; `main` is that of another copy of it. */
export async function kit(
  args: string[],
  options: { cwd?: string; main?: string } = {},
): Promise<Run> {
  const main = options.main ?? `${ROOT}conformance/main.ts`;
  const config = main.replace(/conformance\/main\.ts$/, "deno.json");
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", config, main, ...args],
    cwd: options.cwd ?? ROOT,
    env: { NO_COLOR: "1" },
  });
  const { code, stdout, stderr } = await command.output();
  const text = (part: Uint8Array) => new TextDecoder().decode(part);
  return { code, output: text(stdout), errors: text(stderr) };
}

/** The same, and the report that it writes, as `report.schema.json` says. */
export async function kitReport(args: string[]): Promise<Run & { report: Report }> {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const run = await kit([...args, "--json", path]);
    const report: Report = JSON.parse(await Deno.readTextFile(path));
    await requireSchema("report.schema.json", report);
    return { ...run, report };
  } finally {
    await Deno.remove(path);
  }
}

/** Throws unless a value is as a schema of this folder says. */
export async function requireSchema(path: string, value: unknown): Promise<void> {
  const validate = await schemaOf(path);
  if (!validate(value)) throw new Error(JSON.stringify(validate.errors?.slice(0, 3)));
}

const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
const schemas = new Map<string, ReturnType<typeof ajv.compile>>();

/** The check of a schema of this folder. */
export async function schemaOf(path: string): Promise<ReturnType<typeof ajv.compile>> {
  let schema = schemas.get(path);
  if (schema === undefined) {
    const text = await Deno.readTextFile(new URL(path, import.meta.url));
    schemas.set(path, schema = ajv.compile(JSON.parse(text)));
  }
  return schema;
}

/** Lets a test play in a folder of its own. */
export async function inFolder<T>(play: (folder: string) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix: "millrace-kit-test-" });
  try {
    return await play(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
