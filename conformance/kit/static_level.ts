/**
 * The static cases and the protocol itself, as cases of the kit. The cases of the mailbox are a
 * track of their own.
 *
 * @module
 */

import type { Optional } from "../reference/case.ts";
import { loadCases, resolve, type Resolved } from "../static/load.ts";
import { declined, runCase } from "../static/driver.ts";
import { remoteTestee } from "../static/remote.ts";
import type { Arena } from "./arena.ts";
import type { Hello } from "./protocol.ts";
import { failed, type KitCase, PASS } from "./verdict.ts";

/** A case of `cases/*.jsonl` with what stands beside it. */
export interface StaticCase extends Resolved {
  about: string;
  clauses: string[];
}

/** All static cases, ready to be run. */
export function loadStaticCases(): StaticCase[] {
  const cases = loadCases();
  return [...cases.values()].map((entry) => {
    const { about, clauses } = entry;
    return { ...resolve(entry, cases), about, clauses };
  });
}

/** The chapter of a case. */
export function nounOf(id: string): string {
  return id.slice(0, id.indexOf("/"));
}

/** Static cases for one testee, on memory of its own. */
export function staticCases(cases: StaticCase[]): KitCase<Arena>[] {
  return cases.map((entry) => ({
    id: entry.id,
    about: entry.about,
    clauses: entry.clauses,
    declinedBy: (hello) => whyNot(hello, entry),
    async run(arena) {
      const connection = await arena.connect(0);
      const { problems, got, must } = await runCase(entry, remoteTestee(connection));
      return problems.length === 0 ? PASS : failed(entry.clauses, problems, got, must);
    },
  }));
}

function whyNot(hello: Hello, entry: StaticCase): string | undefined {
  return lacksNoun(hello, nounOf(entry.id)) ?? lacksRole(hello, entry.setting.role) ??
    lacksCarrier(hello, "bytes") ?? lacksOption(hello, entry.mayDecline);
}

/** Which of the things that a port need not offer it lacks. */
export function lacksOption(hello: Hello, mayDecline: readonly Optional[]): string | undefined {
  const name = declined({ mayDecline }, hello);
  return name === undefined ? undefined : `lacks ${name}`;
}

/** Why a testee need not do a chapter's cases. */
export function lacksNoun({ nouns }: Hello, noun: string): string | undefined {
  return nouns.includes(noun) ? undefined : `does not offer ${noun}`;
}

/** Why it need not do a role's. */
export function lacksRole({ roles }: Hello, role: string): string | undefined {
  return roles === undefined || roles.some((each) => each === role)
    ? undefined
    : `has no role ${role}`;
}

/** Why it cannot get the memory. */
export function lacksCarrier({ carriers }: Hello, carrier: string): string | undefined {
  return carriers.some((each) => each === carrier) ? undefined : `has no carrier ${carrier}`;
}

/** What every testee must do before anything else is asked of it. */
export const PROTOCOL_CASES: KitCase<Arena>[] = [
  {
    id: "protocol/unknown_command",
    about: "A command that no version knows is declined.",
    clauses: [],
    declinedBy: () => undefined,
    async run(arena) {
      const problem = await (await arena.connect(0)).tryUnknown();
      return problem === undefined ? PASS : failed([], [{ text: problem, clauses: [] }]);
    },
  },
  {
    id: "protocol/unknown_member",
    about: "A member that no version knows is ignored.",
    clauses: [],
    declinedBy: () => undefined,
    async run(arena) {
      const problem = await (await arena.connect(0)).tryMember();
      return problem === undefined ? PASS : failed([], [{ text: problem, clauses: [] }]);
    },
  },
];
