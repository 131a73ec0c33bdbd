/**
 * While timers and clocks are faked, as test frameworks do it, nothing of theirs comes or moves. A
 * port delivers, and its timeouts end, all the same; and nothing of that stays when it is over.
 */
import { Port } from "millrace";
import { assertEquals, WAIT, within } from "../stage.ts";

const FUNCTIONS = [
  ...["setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  ...["setImmediate", "clearImmediate", "queueMicrotask"],
  ...["requestAnimationFrame", "requestIdleCallback"],
];
/** More than one turn of the event loop may deliver. */
const COUNT = 2000;

export default async function main(): Promise<void> {
  // Before the first use of a port, and later.
  for (let round = 0; round < 2; round++) {
    await faking(use);
    await use();
  }
}

async function use(): Promise<void> {
  const here = Port.create<number>();
  const there = Port.attach<number>(here.memory);
  const heard: number[] = [];
  const all = new Promise<void>((resolve) => {
    there.onmessage = ({ data }) => {
      heard.push(data);
      if (heard.length === COUNT) resolve();
    };
  });
  for (let n = 0; n < COUNT; n++) here.postMessage(n);
  await within(all);
  assertEquals(heard.findIndex((n, index) => n !== index), -1);
  assertEquals(await within(here.readAsync({ timeout: 20 })), undefined);
  const far = here.readAsync(WAIT);
  there.postMessage(1);
  assertEquals(await within(far), 1);
  here.close();
  await within(there.closed);
}

/** Fakes globals while `work` runs. */
async function faking(work: () => Promise<void>): Promise<void> {
  const scope = globalThis as unknown as Record<string, unknown>;
  const { process } = globalThis as unknown as { process?: Record<string, unknown> };
  const undo: (() => void)[] = [];
  const fake = (object: Record<string, unknown>, name: string, value: unknown) => {
    if (!(name in object)) return;
    const own = Object.getOwnPropertyDescriptor(object, name);
    Object.defineProperty(object, name, { value, configurable: true, writable: true });
    undo.push(() => {
      if (own === undefined) delete object[name];
      else Object.defineProperty(object, name, own);
    });
  };
  for (const name of FUNCTIONS) fake(scope, name, () => 0);
  for (const name of ["Date", "performance"]) fake(scope, name, { now: () => 0, timeOrigin: 0 });
  if (process !== undefined) fake(process, "hrtime", () => [0, 0]);
  try {
    await work();
  } finally {
    for (const each of undo) each();
  }
}
