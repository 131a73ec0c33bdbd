/**
 * `--self-test`: what the kit finds of small testees that are broken, one place at a time.
 *
 * @module
 */

import { FAULTS, FAULTS_OF_STREAMS } from "../testees/broken/faults.ts";
import { type Catch, catchFaults, checkGood, type Control } from "./self_check.ts";
import { catchStreamFaults, checkGoodStream } from "./streams/self_check.ts";

type Write = (text: string) => void;

/** Prints what has caught what, and returns the exit code. */
export async function selfTest(write: Write): Promise<number> {
  let isGood = true;
  for await (const found of checkGood()) isGood = tellControl(found, write) && isGood;
  isGood = tellControl(await checkGoodStream(), write) && isGood;
  let count = 0;
  for await (const found of catchFaults()) count += Number(tellCatch(found, write));
  for await (const found of catchStreamFaults()) count += Number(tellCatch(found, write));
  const all = FAULTS.length + FAULTS_OF_STREAMS.length;
  write(`\n${count} of ${all} faults caught\n`);
  return isGood && count === all ? 0 : 1;
}

function tellControl({ window, passed, failed }: Control, write: Write): boolean {
  const held = window === "none" ? "without a fault" : `without a fault, held up at ${window}`;
  write(`${held}: ${passed} passed, ${failed.length} failed\n`);
  for (const fact of failed) write(`  ${fact}\n`);
  return failed.length === 0;
}

function tellCatch({ fault, caught }: Catch, write: Write): boolean {
  const isNamed = caught?.broken.includes(fault.clause) ?? false;
  const named = isNamed ? "" : `, which names [${caught?.broken.join("] [")}]`;
  const found = caught === undefined ? "NOT CAUGHT" : caught.id + named;
  write(`${fault.name.padEnd(18)} ${`[${fault.clause}]`.padEnd(24)} ${found}\n`);
  write(`${"".padEnd(18)} ${fault.about}\n`);
  return isNamed;
}
