/**
 * The assertions of Deno's standard library, from npm, with types.
 *
 * The npm package holds no types: without `assert.d.ts`, every assertion would be `any`, and would
 * no longer narrow the type of what it asserts.
 */
// @ts-types="./assert.d.ts"
export * from "npm:deno-std@1.4.0/assert/mod.js";
