/**
 * Sets the global `SABMessagePortLib`, as the original's build for classic workers and `<script>`
 * does. Bundle it as one script:
 *
 * ```sh
 * deno bundle --format iife --platform browser -o sab_message_port.js \
 *   jsr:@millrace/millrace/sab-message-port/global
 * ```
 *
 * @example
 * ```ts
 * import "@millrace/millrace/sab-message-port/global"; // or importScripts("sab_message_port.js")
 *
 * // deno-lint-ignore no-explicit-any
 * const { SABPipe } = (globalThis as any).SABMessagePortLib;
 * console.log(new SABPipe("w").isWriter); // true
 * ```
 *
 * @module
 */

import * as library from "./sab_message_port.ts";

(globalThis as { SABMessagePortLib?: unknown }).SABMessagePortLib = library;
