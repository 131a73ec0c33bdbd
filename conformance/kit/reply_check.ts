/**
 * Checks replies against `conformance/protocol/reply.schema.json`, and names what is wrong.
 *
 * @module
 */

import { Ajv2020 } from "ajv/2020";
import schema from "../protocol/reply.schema.json" with { type: "json" };
import type { Command } from "./protocol.ts";
import { shown } from "./trouble.ts";

/** What ajv says of a member, as far as it is used here. */
interface Fault {
  instancePath: string;
  schemaPath: string;
  keyword: string;
  message?: string;
  params: Record<string, unknown>;
}

interface Check {
  (value: unknown): boolean;
  errors?: Fault[] | null;
}

const ajv = new Ajv2020({ allErrors: true, strict: false });
ajv.addSchema(schema);
const checks = new Map<string, Check>();

/** Says what is wrong with the reply to a command, or nothing. */
export function replyProblem(
  command: Command["command"] | "unknown",
  reply: unknown,
): string | undefined {
  let check = checks.get(command);
  if (check === undefined) {
    check = ajv.compile({ $ref: `${schema.$id}#/$defs/replies/${command}` }) as unknown as Check;
    checks.set(command, check);
  }
  if (check(reply)) return undefined;
  return describe(check.errors ?? [], reply);
}

/** The fault that stands deepest: those above it only say that something below them is wrong. */
function describe(faults: Fault[], reply: unknown): string {
  const depth = ({ instancePath }: Fault) => instancePath.split("/").length;
  const isAbout = ({ keyword }: Fault) => keyword !== "oneOf" && keyword !== "anyOf";
  const rank = (fault: Fault) => depth(fault) * 2 + Number(isAbout(fault));
  const fault = faults.toSorted((a, b) => rank(b) - rank(a))[0];
  const { instancePath = "", message = "is wrong", params = {} } = fault ?? {};
  const where = instancePath === "" ? "the reply" : `\`${instancePath.slice(1)}\``;
  const extra = params["additionalProperty"];
  const what = extra === undefined
    ? message
    : `has a member \`${extra}\` that is not in the schema`;
  return `${where} ${what}: ${shown(JSON.stringify(reply) ?? "undefined")}`;
}
