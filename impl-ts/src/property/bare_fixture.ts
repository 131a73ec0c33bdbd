/**
 * Gets a property without what an audio worklet lacks, for `bare_test.ts`. Prints the
 * result.
 */

// Without types: these globals are deleted before any part of the library is loaded.
const scope = globalThis as Record<string, unknown>;
for (const name of ["TextDecoder", "TextEncoder", "performance", "setTimeout"]) delete scope[name];

const { SharedProperties } = await import("./property.ts");

const properties = { "größe": { writer: 0 }, peaks: { writer: 1 } };
const here = SharedProperties.create({ properties, spin: 0 });
const there = SharedProperties.attach(here.memory, { spin: 0 });
const target = new Float32Array(4);
const came: unknown[] = [there.names, there.getInto("größe", target)];
here.set("größe", Float32Array.of(1.5, -2));
came.push(there.getInto("größe", target), [...target], there.version("größe"));
there.set("peaks", target);
came.push(here.getInto("peaks", target), here.reader("peaks").wait({ timeout: 0 }));
console.log(JSON.stringify(came));
