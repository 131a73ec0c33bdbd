/** Whatever breaks off a write in the middle of a message costs that message alone. */

import { assert, assertEquals } from "@std/assert";
import { pattern, watched } from "../testing/fixture.ts";
import { Port } from "../port/port.ts";
import type { Mechanism } from "../wait/mechanism.ts";
import { writeMessage } from "../more/raw.ts";
import { claim, publish } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";

const WAIT = { timeout: 5000 };
const LARGE = 700;
const CAPACITY = 256;

type Bytes = Port<Uint8Array>;

/** Both ends in one thread. `fail` makes the writer's next sleep throw. */
function made(): { here: Bytes; there: Bytes; fail: (error: unknown) => void } {
  let failure: { error: unknown } | undefined;
  const mechanism: Mechanism = {
    ...watched(() => {
      if (failure !== undefined) throw failure.error;
    }),
    sleepAsync() {
      if (failure !== undefined) throw failure.error;
      return undefined;
    },
  };
  const here = Port.create<Uint8Array>({ capacity: CAPACITY, mechanism, spin: 0 });
  const there = Port.attach<Uint8Array>(here.memory);
  return { here, there, fail: (error) => failure = error === undefined ? undefined : { error } };
}

/**
 * What breaks off a message of which a part is in the ring; each returns what its writer is told.
 */
const breaks: Record<string, (end: ReturnType<typeof made>) => unknown> = {
  "the deadline of write": ({ here }) => caught(() => here.write(pattern(LARGE), { timeout: 1 })),
  "the deadline of writeMany": ({ here }) =>
    caught(() => writeMany(here, [pattern(LARGE)], { timeout: 1 })),
  "the deadline of writeAsync": ({ here }) =>
    caughtAsync(() => here.writeAsync(pattern(LARGE), { timeout: 1 })),
  "the signal of writeAsync": ({ here }) => {
    const giving = new AbortController();
    const outcome = caughtAsync(() => here.writeAsync(pattern(LARGE), { signal: giving.signal }));
    giving.abort("enough");
    return outcome;
  },
  "the signal of a post": async ({ here, there }) => {
    const giving = new AbortController();
    const posted = here.postMessage(pattern(LARGE), { signal: giving.signal });
    assertEquals(await there.readAsync({ timeout: 2 }), undefined); // some chunks are there
    giving.abort("enough");
    return caughtAsync(() => posted);
  },
  "a sleep that throws, in write": ({ here, fail }) => {
    fail("asleep");
    return caught(() => here.write(pattern(LARGE)));
  },
  "a sleep that throws, in writeAsync": ({ here, fail }) => {
    fail("asleep");
    return caughtAsync(() => here.writeAsync(pattern(LARGE)));
  },
  "bytes that are transferred": ({ here, there }) => {
    const bytes = new Uint8Array(LARGE);
    const outcome = caughtAsync(() => here.writeAsync(bytes));
    assertEquals(there.tryRead(), undefined);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    return outcome;
  },
};

/** The ways to write the next message. */
const nexts: Record<string, (here: Bytes, next: Uint8Array) => unknown> = {
  write: (here, next) => here.write(next, WAIT),
  tryWrite: async (here, next) => {
    for (let tries = 0; !here.tryWrite(next); tries++) {
      assert(tries < 1000, "there is never room");
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  },
  writeAsync: (here, next) => here.writeAsync(next, WAIT),
  writeMany: (here, next) => writeMany(here, [next], WAIT),
  writeMessage: (here, next) => writeMessage(here, { payload: next }, WAIT),
  postMessage: (here, next) => here.postMessage(next),
  claim: (here, next) => {
    claim(here, next.length, WAIT).payload.set(next);
    publish(here);
  },
};

for (const [name, breakOff] of Object.entries(breaks)) {
  Deno.test(`[pipe.owed] a message that is given up by ${name}`, async () => {
    for (const [next, write] of Object.entries(nexts)) {
      const ends = made();
      using here = ends.here;
      using there = ends.there;
      const told = await breakOff(ends);
      ends.fail(undefined);
      assert(told !== undefined, "it was written");
      const sizes = next === "claim" ? [3, 100] : [3, 100, 130];
      for (const size of sizes) {
        const wrote = caughtAsync(async () => await write(here, pattern(size, size)));
        const seen = [await read(there)];
        if (size === sizes[0]) seen.push(await read(there));
        assertEquals(await wrote, undefined, next);
        const expected = [pattern(size, size)];
        assertEquals(seen, size === sizes[0] ? ["message.cancelled", ...expected] : expected, next);
      }
      here.end();
      assertEquals([await there.readAsync(WAIT), there.ended], [undefined, true]);
    }
  });
}

async function read(port: Bytes): Promise<unknown> {
  try {
    return await port.readAsync(WAIT);
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

function caught(act: () => void): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

async function caughtAsync(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act();
    return undefined;
  } catch (error) {
    return error;
  }
}
