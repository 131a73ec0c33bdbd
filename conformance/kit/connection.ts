/**
 * Speaks with one running testee: one command at a time, and every reply checked.
 *
 * @module
 */

import schema from "../protocol/reply.schema.json" with { type: "json" };
import { Ajv2020 } from "ajv/2020";
import type { Link } from "./link.ts";
import { type Command, type Hello, PROTOCOL, type Reply } from "./protocol.ts";
import { shown, Trouble } from "./verdict.ts";

// Checks replies against `conformance/protocol/reply.schema.json`, and names what is wrong.

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

/** Within which a testee replies; for `start`, a process may have to be loaded first. */
export const patience: { replyMs: number; startMs: number } = { replyMs: 10_000, startMs: 30_000 };

/** A testee that has said who it is. */
export class Connection {
  readonly link: Link;
  readonly hello: Hello;
  /** Counts the handles, too. */
  #handles = 0;
  #ids: number;

  private constructor(link: Link, hello: Hello) {
    this.link = link;
    this.hello = hello;
    this.#ids = 1;
  }

  /** Sends `start`. Throws `Trouble` where the answer is no good, and ends the testee. */
  static async start(link: Link, timeoutMs: number = patience.startMs): Promise<Connection> {
    const command: Command = { command: "start", protocol: PROTOCOL };
    try {
      const reply = await exchange(link, 1, command, timeoutMs);
      if ("result" in reply) return new Connection(link, reply.result as Hello);
      const why = "error" in reply ? reply.error.code : reply.decline;
      throw new Trouble("error", `the testee will not start: ${why}`);
    } catch (error) {
      await link.kill();
      throw withNotes(error, link);
    }
  }

  /** A handle that was not used before. */
  newHandle(): number {
    return ++this.#handles;
  }

  /** Sends a command and returns the reply to it. Throws `Trouble`, after which nothing works. */
  async send(command: Command, timeoutMs: number = patience.replyMs): Promise<Reply> {
    try {
      const grace = command.command === "run" ? command.timeout_ms : 0;
      return await exchange(this.link, ++this.#ids, command, timeoutMs + grace);
    } catch (error) {
      throw withNotes(error, this.link);
    }
  }

  /** Sends what the kit cannot do without. Throws where that fails. */
  async must<T>(command: Command): Promise<T> {
    const reply = await this.send(command);
    if ("result" in reply) return reply.result as T;
    const what = "error" in reply
      ? `failed with ${reply.error.code}`
      : `declined: ${reply.decline}`;
    throw new Trouble("error", `${command.command} ${what}`);
  }

  /** Sends something that no version of the protocol knows; says what is wrong with the reply. */
  async tryUnknown(): Promise<string | undefined> {
    const id = ++this.#ids;
    await this.link.send({ id, command: "unheard_of", handle: 1 });
    const reply = await this.link.next(patience.replyMs);
    return replyProblem("unknown", reply) ?? idProblem(reply, id);
  }

  /** Sends a command with a member that no version knows, which changes nothing. */
  async tryMember(): Promise<string | undefined> {
    const id = ++this.#ids;
    await this.link.send({ id, command: "start", protocol: PROTOCOL, unheard_of: { of: [1] } });
    const reply = await this.link.next(patience.replyMs);
    const problem = replyProblem("start", reply) ?? idProblem(reply, id);
    if (problem !== undefined) return problem;
    return (reply as object) && "result" in (reply as object) ? undefined : "it was not ignored";
  }
}

async function exchange(
  link: Link,
  id: number,
  command: Command,
  timeoutMs: number,
): Promise<Reply> {
  await link.send({ id, ...command });
  const reply = await link.next(timeoutMs);
  const problem = replyProblem(command.command, reply) ?? idProblem(reply, id);
  if (problem !== undefined) {
    throw new Trouble("error", `bad reply to ${command.command}: ${problem}`);
  }
  return reply as Reply;
}

function idProblem(reply: unknown, id: number): string | undefined {
  const got = (reply as { id: unknown }).id;
  return got === id ? undefined : `it has the id ${got}, out of order: ${id} is due`;
}

/** What a testee said on standard error tells more than how it ended. */
function withNotes(error: unknown, link: Link): unknown {
  const notes = link.notes().trim();
  if (error instanceof Trouble && notes !== "" && !error.message.includes(notes)) {
    error.message += `; on standard error: ${notes.slice(-600)}`;
  }
  return error;
}
