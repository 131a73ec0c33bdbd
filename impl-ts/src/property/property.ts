/**
 * Properties: registers that hold the latest value. One thread sets a property and all others get
 * it. No call waits for another thread, and no value is ever partly old and partly new. See
 * `spec/property.md`.
 *
 * @example
 * ```ts
 * import { SharedProperties } from "@millrace/millrace/property";
 *
 * type State = { speed: number; position: [number, number] };
 * using page = SharedProperties.create<State>({
 *   properties: { speed: { writer: 0 }, position: { writer: 1 } },
 * });
 * // In a worker, which was posted `page.memory`:
 * using worker = SharedProperties.attach<State>(page.memory);
 *
 * page.set("speed", 3);
 * worker.set("position", [worker.get("speed") ?? 0, 0]);
 * console.log(page.get("position")); // [ 3, 0 ]
 * ```
 *
 * @module
 */

export { propertyChannel, type PropertyPlan } from "./name.ts";
export { PropertyError } from "./slots.ts";
export { PropertyWriter, type PropertyWriterOptions } from "./writer.ts";
export { PropertyReader, type PropertyReaderOptions } from "./reader.ts";
export { SharedProperties } from "./group.ts";
export type { SharedPropertiesOptions, SharedPropertiesPlan } from "./group.ts";
