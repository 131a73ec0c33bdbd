/** How large a message a reader accepts: by default less of JSON, which costs most to parse. */

import { assertEquals, assertThrows } from "@std/assert";
import type { Codec } from "../codec/codec.ts";
import { MessageError } from "../error.ts";
import { assertCode, pattern, pipe, scribed } from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { MailboxReader, MailboxWriter } from "../mailbox/mailbox.ts";
import { writeMessage } from "../more/raw.ts";

const MIB = 1024 * 1024;
/** The default limits. */
const LIMIT = 64 * MIB;
const JSON_LIMIT = 4 * MIB;

const CODEC_BYTES = layout.CODEC_BYTES;
const CODEC_TEXT = layout.CODEC_TEXT;
const CODEC_JSON = layout.CODEC_JSON;
const CODEC_JSON_BATCH = layout.CODEC_JSON_BATCH;
const OWN: Codec<number> = {
  code: 200,
  encode: (size) => new Uint8Array(size),
  decode: (payload) => payload.length,
};

/** A JSON payload of `size` bytes: an array of one text. */
function json(size: number): Uint8Array {
  const payload = new Uint8Array(size).fill("x".charCodeAt(0));
  payload.set(new TextEncoder().encode('["'));
  payload.set(new TextEncoder().encode('"]'), size - 2);
  return payload;
}

Deno.test("[pipe.limit] a message in parts is dropped at its first frame", () => {
  for (const maxMessageSize of [undefined, 0, 5 * MIB, 2 ** 32]) {
    const limits = [CODEC_BYTES, CODEC_TEXT, CODEC_JSON, OWN.code].map((codec) => {
      const usual = codec === CODEC_JSON ? JSON_LIMIT : LIMIT;
      return { codec, limit: maxMessageSize ?? usual };
    });
    for (const { codec, limit } of limits) {
      for (const total of [limit, limit + 1]) {
        if (total >= 2 ** 32) continue;
        const { reader, scribe } = scribed({ maxMessageSize, codec: OWN });
        scribe.frame({ flags: layout.FRAME_FLAG_FIRST, codec, total }).publish();
        if (total <= limit) assertEquals(reader.tryRead(), undefined);
        else {
          const error = assertThrows(() => reader.tryRead(), MessageError, `${limit}`);
          assertEquals(error.code, "message.size");
        }
      }
    }
  }
});

Deno.test("[pipe.limit] a whole message of JSON is dropped, and the next one read", () => {
  const { writer, reader } = pipe({ capacity: 16 * MIB });
  for (const codec of [CODEC_JSON, CODEC_JSON_BATCH]) {
    for (const size of [JSON_LIMIT, JSON_LIMIT + 1, 5]) {
      writeMessage(writer, { codec, payload: json(size) });
      if (size > JSON_LIMIT) assertCode(() => reader.tryRead(), "message.size");
      else {
        const value = reader.tryRead();
        const text = codec === CODEC_JSON ? value[0] : value;
        assertEquals([text.length, reader.tryRead()], [size - 4, undefined]);
      }
    }
  }
  for (const codec of [CODEC_BYTES, CODEC_TEXT]) {
    writeMessage(writer, { codec, payload: json(JSON_LIMIT + 1) });
    assertEquals(reader.tryRead().length, JSON_LIMIT + 1);
  }
});

Deno.test("[pipe.limit] whoever names a limit has it for all codecs", () => {
  const { writer, reader } = pipe({ capacity: 16 * MIB, maxMessageSize: 5 * MIB });
  for (const codec of [CODEC_JSON, CODEC_BYTES]) {
    for (const [size, code] of [[5 * MIB, ""], [5 * MIB + 1, "message.size"]] as const) {
      writeMessage(writer, { codec, payload: json(size) });
      if (code !== "") assertCode(() => reader.tryRead(), code);
      else assertEquals(reader.tryRead().length, codec === CODEC_JSON ? 1 : size);
    }
  }
});

Deno.test("[mailbox.limit] the default of a mailbox is that of JSON", () => {
  for (
    const [options, limit] of [[{}, JSON_LIMIT], [{ maxMessageSize: 5 * MIB }, 5 * MIB]] as const
  ) {
    const memory = new SharedArrayBuffer(32 + 6 * MIB);
    using writer = MailboxWriter.attach<string>(memory);
    using reader = MailboxReader.attach<string>(memory, options);
    for (const size of [limit, limit + 1, 9]) {
      writer.write("x".repeat(size - 4)); // the rest is quotes and brackets
      if (size > limit) assertCode(() => reader.tryRead(), "message.size");
      else assertEquals(reader.tryRead()?.length, size - 4);
    }
  }
});

Deno.test("bytes of more than the limit of JSON pass in parts", async () => {
  const { writer, reader } = pipe({ capacity: MIB });
  const bytes = pattern(JSON_LIMIT + 12_345);
  const [read] = await Promise.all([
    reader.readAsync({ timeout: 20_000 }),
    writer.writeAsync(bytes),
  ]);
  assertEquals(read, bytes);
});
