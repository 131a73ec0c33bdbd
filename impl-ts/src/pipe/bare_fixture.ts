/**
 * Moves bytes in a scope that has no more than an audio worklet's, for `bare_test.ts`. Prints
 * what came.
 */

import { publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { tryReadInto } from "../more/raw.ts";
// Without a type, so that they can be deleted, before anything of the library is loaded.
const scope = globalThis as Record<string, unknown>;
for (const name of ["TextDecoder", "TextEncoder", "performance", "setTimeout"]) delete scope[name];

const { Port } = await import("../port/port.ts");

const here = Port.create<Uint8Array>({ spin: 0 });
const there = Port.attach<Uint8Array>(here.memory, { spin: 0 });
const target = new Uint8Array(8);
const came: unknown[] = [tryReadInto(there, target), tryPeek(there)];
here.tryWrite(Uint8Array.of(1, 2));
here.tryWrite(Uint8Array.of(3, 4, 5));
const place = tryClaim(here, 1)!;
place.area[place.offset] = 6;
publish(here);
came.push(tryReadInto(there, target), target[1]);
const lent = tryPeek(there)!;
came.push(lent.size, lent.area[lent.offset + 2]);
release(there);
came.push(there.tryRead()![0]);
console.log(JSON.stringify(came));
