/**
 * The names of properties, and the channels of a geometry that become properties. See
 * `spec/property.md`.
 *
 * An audio worklet finds properties by their names, and has neither `TextEncoder` nor
 * `TextDecoder`. So names are converted with the URI functions of the language, which produce and
 * accept UTF-8.
 *
 * @module
 */

import { layout } from "../memory/layout.ts";
import { type ChannelGeometry, requireInteger } from "../memory/plan.ts";

const SLOTS = layout.PROPERTY_SLOT_COUNT;
/** The size of the smallest slot in bytes. The size of a larger slot is a multiple of it. */
const SLOT_UNIT = layout.PROPERTY_DATA_UNIT / SLOTS;
const NAME = layout.PROPERTY_NAME_OFFSET;
/** The default size of a value in bytes: that of the smallest slot. */
const VALUE_SIZE = SLOT_UNIT - layout.PROPERTY_SLOT_SIZE;

/**
 * A property as its creator plans it: the endpoint that sets it, its name, and its size.
 *
 * @example
 * ```ts
 * import { PropertyReader, type PropertyPlan, propertyChannel } from "@millrace/millrace/property";
 * import { Segment } from "@millrace/millrace";
 *
 * const plan: PropertyPlan = { writer: 0, name: "spectrum", size: 4 * 512 };
 * const segment = Segment.allocate({ endpoints: 2, channels: [propertyChannel(plan)] });
 * using reader = PropertyReader.attach(segment, { endpoint: 1 });
 * console.log(reader.name, reader.capacity >= 2048); // spectrum true
 * ```
 */
export interface PropertyPlan {
  /** The index of the endpoint that sets the property. */
  readonly writer: number;
  /** Its name, at most 124 bytes of UTF-8. Default: no name. */
  readonly name?: string | undefined;
  /**
   * Largest size of an encoded value in bytes; rounded up to 112, 240, 368 and so on. Default 112.
   */
  readonly size?: number | undefined;
  /** The application's own number for the channel, a `u32`. Default 0. */
  readonly label?: number | undefined;
}

/**
 * Makes a property channel for a geometry, which may also contain rings.
 *
 * @throws {RangeError} if the writer, the size or the label is out of range, or the name is longer
 * than 124 bytes.
 * @throws {TypeError} if the name has a lone surrogate, which UTF-8 cannot represent.
 *
 * @example
 * ```ts
 * import { propertyChannel, PropertyReader, PropertyWriter } from "@millrace/millrace/property";
 * import { Segment } from "@millrace/millrace";
 *
 * const gain = propertyChannel({ writer: 0, name: "gain" });
 * const segment = Segment.allocate({ endpoints: 2, channels: [gain] });
 * using writer = PropertyWriter.attach<number>(segment);
 * using reader = PropertyReader.attach<number>(segment, { endpoint: 1 }); // in another thread
 * writer.set(0.5);
 * console.log(reader.get()); // 0.5
 * ```
 */
export function propertyChannel(plan: PropertyPlan): ChannelGeometry {
  const { writer, name = "", size = VALUE_SIZE, label = 0 } = plan;
  requireInteger("writer", writer, 0, layout.ENDPOINT_COUNT_MAX - 1);
  requireInteger("size", size, 0, layout.SEGMENT_SIZE_MAX / SLOTS - layout.PROPERTY_SLOT_SIZE);
  requireInteger("label", label, 0, 2 ** 32 - 1);
  const slot = Math.ceil((size + layout.PROPERTY_SLOT_SIZE) / SLOT_UNIT) * SLOT_UNIT;
  const capacity = slot * SLOTS;
  const kind = layout.CHANNEL_KIND_PROPERTY;
  const control = controlOf(name);
  // [property.same_name]
  const matches = (found: Int32Array) => nameIn(found) === nameIn(control);
  const form = { kind, control, matches };
  return { writer, reader: layout.ENDPOINT_NONE, capacity, label, form };
}

/** Makes the control area of a property with this name, and with no value yet. [property.name] */
function controlOf(name: string): Int32Array {
  const bytes = toUtf8(name);
  if (bytes.length > layout.PROPERTY_NAME_SIZE_MAX) {
    throw new RangeError(`name must have at most 124 bytes of UTF-8: ${bytes.length}`);
  }
  const control = new Int32Array(layout.PROPERTY_CONTROL_SIZE >> 2);
  control[layout.PROPERTY_NAME_SIZE_OFFSET >> 2] = bytes.length;
  new Uint8Array(control.buffer).set(bytes, NAME);
  return control;
}

/**
 * Reads the name in a control area; empty if there is none, or if it is invalid. [property.find]
 */
export function nameIn(control: Int32Array): string {
  const size = control[layout.PROPERTY_NAME_SIZE_OFFSET >> 2]! >>> 0;
  if (size > layout.PROPERTY_NAME_SIZE_MAX) return "";
  const { buffer, byteOffset } = control;
  let text = "";
  for (const byte of new Uint8Array(buffer, byteOffset + NAME, size)) {
    text += `%${byte.toString(16).padStart(2, "0")}`;
  }
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** @throws {TypeError} if UTF-8 cannot represent the text. */
function toUtf8(text: string): Uint8Array {
  let encoded: string;
  try {
    encoded = encodeURIComponent(text);
  } catch (cause) {
    throw new TypeError("Cannot name property: its name has a lone surrogate", { cause });
  }
  const bytes = encoded.replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Uint8Array.from(bytes, (character) => character.charCodeAt(0));
}
