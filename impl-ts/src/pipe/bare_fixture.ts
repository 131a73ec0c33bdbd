/**
 * Moves bytes in a scope that has no more than an audio worklet's, for `bare_test.ts`. Prints
 * what came.
 */

// Without a type, so that they can be deleted, before anything of the library is loaded.
const scope = globalThis as Record<string, unknown>;
for (const name of ["TextDecoder", "TextEncoder", "performance", "setTimeout"]) delete scope[name];

const { Port } = await import("../port/port.ts");

const here = Port.create<Uint8Array>({ spin: 0 });
const there = Port.attach<Uint8Array>(here.memory, { spin: 0 });
const target = new Uint8Array(8);
const came: unknown[] = [there.tryReadInto(target), there.tryPeek()];
here.tryWrite(Uint8Array.of(1, 2));
here.tryWrite(Uint8Array.of(3, 4, 5));
const place = here.tryClaim(1)!;
place.area[place.offset] = 6;
here.publish();
came.push(there.tryReadInto(target), target[1]);
const lent = there.tryPeek()!;
came.push(lent.size, lent.area[lent.offset + 2]);
there.release();
came.push(there.tryRead()![0]);
console.log(JSON.stringify(came));
