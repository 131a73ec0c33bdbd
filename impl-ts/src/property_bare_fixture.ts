/**
 * Gets a property where there is no more than a worklet for audio has, for `property_bare_test.ts`.
 * Prints what came.
 */

// Without a type: they are gone before anything of the library is loaded.
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
