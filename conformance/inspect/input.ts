/**
 * What can be inspected besides the bytes of a file: hexadecimal, a dump of `hexdump -C`, `xxd` or
 * `od -A x -t x1`, and the image of a case.
 *
 * @module
 */

/** Says what is wrong with what was given. */
export class InputError extends Error {
  override name = "InputError";
}

/** Bytes, and in which form they came. */
export interface Input {
  bytes: Uint8Array;
  form: "bytes" | "hexadecimal" | "dump" | "image";
}

/** More than this is not read: a ring of 1 GiB, the largest, and everything around it. */
export const INPUT_MAX = 2 ** 30 + 2 ** 20;

/** Bytes as they are, unless all of them are a text in one of the forms. */
export function decodeInput(bytes: Uint8Array): Input {
  if (bytes.length === 0 || !isText(bytes)) return { bytes, form: "bytes" };
  const text = new TextDecoder().decode(bytes);
  if (/^\s*(?:[[{]|0x|\\x|[0-9a-f]{2})/i.test(text)) {
    try {
      return parseText(text);
    } catch (error) {
      // What merely looks like one of them at its beginning is bytes like any other.
      if (!(error instanceof InputError) || text.trimStart().startsWith("{")) throw error;
    }
  }
  return { bytes, form: "bytes" };
}

/** Neither a segment nor a used mailbox is: their words hold zeros. */
function isText(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte >= 0x20 && byte < 0x7f || byte >= 0x80 || isSpace(byte));
}

function isSpace(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Reads a text in one of the forms. @throws {InputError} if it is in none. */
export function parseText(text: string): Input {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed)) return { bytes: parseImage(trimmed), form: "image" };
  const dump = parseDump(trimmed);
  if (dump !== undefined) return { bytes: dump, form: "dump" };
  return { bytes: parseHex(trimmed), form: "hexadecimal" };
}

/** Digits with any spaces, commas, colons, `0x` and `\x` between the bytes. */
function parseHex(text: string): Uint8Array {
  const digits = text.replace(/0x|\\x|[\s,:]/gi, "");
  const wrong = /[^0-9a-f]/i.exec(digits)?.[0];
  if (wrong !== undefined) {
    throw new InputError(`Cannot read hexadecimal: ${JSON.stringify(wrong)} is no digit`);
  }
  if (digits === "") throw new InputError("Cannot read hexadecimal: there are no digits");
  if (digits.length % 2 !== 0) {
    throw new InputError(`Cannot read hexadecimal: an odd number of digits, ${digits.length}`);
  }
  return toBytes(digits);
}

function toBytes(digits: string): Uint8Array {
  const bytes = new Uint8Array(digits.length / 2);
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = parseInt(digits.slice(2 * index, 2 * index + 2), 16);
  }
  return bytes;
}

/** A line of a dump: where its bytes begin; a star stands for more of the line before. */
interface DumpLine {
  offset: number;
  bytes: Uint8Array;
}

/** A dump, or `undefined` where the lines are not those of one. */
function parseDump(text: string): Uint8Array | undefined {
  const lines = text.split("\n").map((line) => line.trimEnd()).filter((line) => line !== "");
  const read = lines.map((line) => line.trim() === "*" ? "*" : readDumpLine(line));
  const isDump = read.every((line) => line !== undefined) &&
    read.some((line) => typeof line === "object" && line.bytes.length > 0);
  if (!isDump) {
    // Two bytes as one number, and their order turned around.
    if (/^[0-9a-f]{7}( [0-9a-f]{4}){1,8}$/m.test(text) && lines.length > 1) {
      throw new InputError("Cannot read dump: its bytes are in words; use hexdump -C");
    }
    return undefined;
  }
  const parsed = read as ("*" | DumpLine)[];
  const ends = parsed.map((line) => line === "*" ? 0 : line.offset + line.bytes.length);
  const memory = makeMemory(Math.max(...ends));
  let before: DumpLine | undefined;
  let isRepeated = false;
  for (const line of parsed) {
    if (line === "*") {
      isRepeated = true;
      continue;
    }
    if (before !== undefined && line.offset < before.offset + before.bytes.length) {
      throw new InputError(`Cannot read dump: offset ${line.offset.toString(16)} goes back`);
    }
    if (isRepeated && before !== undefined && before.bytes.length > 0) {
      const { bytes, offset } = before;
      for (let at = offset + bytes.length; at < line.offset; at += bytes.length) {
        memory.set(bytes.subarray(0, line.offset - at), at);
      }
    }
    memory.set(line.bytes, line.offset);
    [before, isRepeated] = [line, false];
  }
  return memory;
}

function readDumpLine(line: string): DumpLine | undefined {
  const match = /^\s*([0-9a-f]{4,16})(:?)(?:\s+(.*))?$/i.exec(line);
  if (match === null) return undefined;
  const [, offset, colon, rest = ""] = match as unknown as [string, string, string, string?];
  // After the bytes comes a text: `xxd` has two spaces before it, `hexdump -C` a bar.
  const shown = colon === "" ? rest.replace(/(?:\s*\||\s{3}).*$/, "") : rest.split("  ")[0]!;
  const pairs = colon === "" ? /^(?:[0-9a-f]{2}\s{0,2})*$/i : /^(?:(?:[0-9a-f]{2})+\s?)*$/i;
  if (!pairs.test(shown) || colon === "" && /[0-9a-f]{3}/i.test(shown)) return undefined;
  return { offset: parseInt(offset, 16), bytes: toBytes(shown.replace(/\s/g, "")) };
}

/** The image of a case, a case, or lines of one. */
function parseImage(text: string): Uint8Array {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InputError(`Cannot read image: ${(error as Error).message}`);
  }
  if (isObject(value) && isObject(value.image)) value = value.image;
  const lines = Array.isArray(value) ? value : isObject(value) ? value.bytes ?? [value] : undefined;
  if (!Array.isArray(lines)) throw new InputError("Cannot read image: `bytes` is no array");
  const runs = lines.map((line) => {
    const { offset, hex } = isObject(line) ? line : {};
    if (!isCount(offset) || typeof hex !== "string") {
      throw new InputError("Cannot read image: a line is not { offset, hex }");
    }
    return { offset, bytes: hex.trim() === "" ? new Uint8Array(0) : parseHex(hex) };
  });
  const size = isObject(value) && value.size !== undefined
    ? value.size
    : Math.max(0, ...runs.map(({ offset, bytes }) => offset + bytes.length));
  if (!isCount(size)) throw new InputError("Cannot read image: `size` is no count of bytes");
  const memory = makeMemory(size);
  for (const { offset, bytes } of runs) {
    // As in the cases, what lies after the size is cut off.
    if (offset < size) memory.set(bytes.subarray(0, size - offset), offset);
  }
  return memory;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function makeMemory(size: number): Uint8Array {
  checkSize(size);
  return new Uint8Array(size);
}

/** @throws {InputError} if so many bytes are too many. */
export function checkSize(size: number): void {
  if (size <= INPUT_MAX) return;
  throw new InputError(`Cannot inspect ${size} bytes: more than ${INPUT_MAX}`);
}
