import { assert, assertEquals } from "@std/assert";
import { MessageError } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { readMessageAsync } from "../more/raw.ts";
import { Reader } from "../pipe/ends.ts";
import { Segment } from "../memory/segment.ts";
import { failEndpoint } from "../wait/state.ts";
import { messageOf, pipe, post, turn, until, WIRES, within } from "./sab_fixture.ts";
import { SABPipe } from "./sab_message_port.ts";

/** A value that is encoded as so many bytes, and counts how often it is encoded. */
class Counted {
  static count = 0;
  readonly #n: number;
  readonly #fill: string;

  constructor(n: number, size: number) {
    this.#n = n;
    this.#fill = "x".repeat(size);
  }

  toJSON(): unknown {
    Counted.count++;
    return { n: this.#n, fill: this.#fill };
  }
}

async function takeAll(reader: SABPipe, count: number): Promise<{ n: number }[]> {
  const taken: { n: number }[] = [];
  while (taken.length < count) taken.push(...(await within(reader.asyncRead(1e4, 1e6))).reverse());
  return taken;
}

for (const wire of WIRES) {
  Deno.test(`burst: what is no JSON in its middle costs itself alone, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire, size: 8192 });
    const bad = [0, 1, 57, 130, 131, 299];
    const values = Array.from({ length: 300 }, (_, n) => bad.includes(n) ? BigInt(n) : { n });
    const promise = values.map((value) => writer.postMessage(value)).at(-1);
    const taken = await takeAll(reader, 300 - bad.length);
    assert((await messageOf(() => promise)).includes("BigInt"));
    const rest = [...values.keys()].filter((n) => !bad.includes(n));
    assertEquals(taken.map(({ n }) => n), rest);
    await post(writer, { n: 300 });
    assertEquals(reader.tryRead(9), [{ n: 300 }]);
  });

  Deno.test(`burst: a handler that posts does not starve timers, ${wire}`, async () => {
    const { writer, reader } = pipe({ wire });
    const most = 300_000; // a second of hops, and more
    let hops = 0;
    reader.onmessage = () => {
      if (++hops < most) writer.postMessage(0);
    };
    writer.postMessage(0);
    for (let turns = 0; turns < 4; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
    assert(hops < most, `${hops} messages came before four turns of the event loop`);
    reader.onmessage = null;
  });
}

Deno.test("burst: on the ring, each value is encoded once, in bounded batches", async () => {
  for (const size of [128 * 1024, 1024 * 1024]) await playBatches(size);
});

async function playBatches(pipeSize: number): Promise<void> {
  const writer = new SABPipe("w", pipeSize);
  const reader = Reader.attach(Segment.attach(writer.buffer));
  for (const size of [500, 20, 3_000]) {
    // With the first burst of a size, the writer finds out how many values fit a batch.
    for (const isFirst of [true, false]) {
      Counted.count = 0;
      const count = 1_000;
      for (let n = 0; n < count; n++) writer.postMessage(new Counted(n, size));
      let batches = 0;
      for (let n = 0; n < count; batches++) {
        const { codec, payload } = (await within(readMessageAsync(reader)))!;
        assert(payload.length <= 12 * 1024, `a batch of ${payload.length} bytes`);
        const value = JSON.parse(new TextDecoder().decode(payload));
        for (const one of codec === layout.CODEC_JSON_BATCH ? value : [value]) {
          assertEquals(one.n, n++);
        }
      }
      if (isFirst) continue;
      assert(Counted.count < 1.1 * count, `${Counted.count} encodings of ${count} values`);
      // Nearly a sixth of the ring in the smaller pipe: 64 KiB.
      const each = Math.floor(9_500 / (size + 22));
      assert(batches <= 1 + Math.ceil(count / each), `${batches} batches of ${size} bytes`);
    }
  }
  reader.close();
}

Deno.test("burst: on the ring, a message lost in its middle costs itself alone", async () => {
  const writer = new SABPipe("w");
  const reader = new SABPipe("r", writer.buffer, 0, null, null, { maxMessageSize: 50_000 });
  for (const text of ["before", "x".repeat(100_000), "after"]) writer.postMessage(text);
  const read: unknown[] = [];
  while (read.length < 3) {
    read.push(await within(reader.asyncRead()).catch((error) => (error as MessageError).code));
  }
  assertEquals(read, ["before", "message.size", "after"]);
  writer.destroy();
});

Deno.test("burst: on the ring, the death of the reader in its middle rejects it", async () => {
  const writer = new SABPipe("w", 4096);
  const reader = new SABPipe("r", writer.buffer);
  const posted = Array.from({ length: 100 }, () => writer.postMessage("x".repeat(100)));
  await turn();
  assertEquals(reader.tryRead()?.length, 100);
  failEndpoint(Segment.attach(writer.buffer), 1);
  for (const promise of posted) assertEquals(await messageOf(() => promise), "SABPipe disposed");
  await until(() => writer.isDisposed());
});

Deno.test("burst: on the ring, the death of the writer loses nothing written", async () => {
  const writer = new SABPipe("w", 4096);
  const reader = new SABPipe("r", writer.buffer);
  const seen: unknown[] = [];
  reader.onmessage = ({ data }) => seen.push(data);
  await post(writer, 1, 2, 3);
  failEndpoint(Segment.attach(writer.buffer), 0);
  await until(() => !reader._messageLoopActive);
  assertEquals(seen, [1, 2, 3]);
});
