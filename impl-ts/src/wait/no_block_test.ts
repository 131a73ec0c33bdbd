// How often a call looks on a thread that must not block: by the shared words that it loads.

import { assert } from "@std/assert";
import {
  assertCode,
  onTailLoads,
  pattern,
  pipeSegment,
  scribed,
  watched,
} from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import { MailboxReader, MailboxWriter } from "../mailbox/mailbox.ts";
import { Port } from "../port/port.ts";
import { Writer } from "../pipe/ends.ts";
import { select } from "../more/select.ts";
import { attachEndpoint } from "./endpoint.ts";
import { peek } from "../more/lend.ts";
import { readMany } from "../more/many.ts";

/** Of a thread that must not block: a sleep fails the test. */
const mechanism = watched(() => {
  throw new Error("a call sleeps that must not block");
}, false);

/** Makes a call that must be forbidden, and returns how often it loaded a word: below 5000. */
function loadsOf(word: Int32Array, before: () => void, call: () => unknown): number {
  const { load } = Atomics;
  let count = 0;
  try {
    Atomics.load = ((words: Int32Array, at: number) => {
      const isWord = words.buffer === word.buffer && words.byteOffset + 4 * at === word.byteOffset;
      if (isWord && ++count > 5000) throw new Error("a call goes on that must not block");
      if (isWord) before();
      return load(words, at);
    }) as typeof load;
    assertCode(call, "wait.forbidden");
  } finally {
    Atomics.load = load;
  }
  return count;
}

function assertFew(loads: number): void {
  assert(loads > 1 && loads <= layout.WAIT_NO_BLOCK_LOOKS, `${loads} looks`);
}

/** One word of a segment's first ring. */
function ringWord(segment: { words(offset: number, size: number): Int32Array }, index: number) {
  return segment.words(512, 512).subarray(index, index + 1);
}

Deno.test("[wait.no_block] a call that finds nothing looks 128 times at most", () => {
  for (const spin of [undefined, 0, 1, 1e6]) {
    const port = Port.create({ mechanism, spin });
    const tail = port.segment.channels[1]!.controlOffset / 4;
    const word = port.segment.words(0, port.segment.size).subarray(tail, tail + 1);
    port.write(1); // so that it waits for an answer
    for (const timeout of [undefined, 20]) {
      const loads = loadsOf(word, () => {}, () => port.read({ timeout }));
      assert(loads <= layout.WAIT_NO_BLOCK_LOOKS, `${loads} looks`);
    }
    port.close();
  }
});

Deno.test("[wait.no_block] so does one that finds frames and no message at every look", () => {
  for (const spin of [undefined, 0]) {
    const { reader, scribe } = scribed({ mechanism, spin });
    for (const call of [() => reader.read(), () => readMany(reader, 2), () => peek(reader)]) {
      let loads = 0;
      const skipped = () => {
        if ((loads += 1) > 5000) throw new Error("a call goes on that must not block");
        scribe.frame({ kind: 200 }).publish();
      };
      onTailLoads(scribe, skipped, () => assertCode(call, "wait.forbidden"));
      assertFew(loads);
    }
  }
});

Deno.test("[wait.no_block] so does one that finds room for another part at every look", () => {
  const segment = pipeSegment({ start: 0 });
  const writer = Writer.attach(segment, { codec: "bytes", mechanism });
  attachEndpoint(segment, 1);
  const [tail, head] = [layout.RING_TAIL_WORD, layout.RING_HEAD_WORD];
  const words = segment.words(512, 512);
  const takeAll = () => Atomics.store(words, head, words[tail]!);
  assertFew(loadsOf(ringWord(segment, head), takeAll, () => writer.write(pattern(100_000))));
});

Deno.test("[wait.no_block] so does a select that finds frames and no message at every look", () => {
  const { reader, scribe } = scribed({ mechanism });
  let loads = 0;
  const skipped = () => {
    if ((loads += 1) > 5000) throw new Error("a call goes on that must not block");
    scribe.frame({ kind: 200 }).publish();
  };
  onTailLoads(scribe, skipped, () => assertCode(() => select([reader]), "wait.forbidden"));
  assertFew(loads);
});

Deno.test("[wait.no_block] so does a side of a mailbox whose turn it always is", () => {
  const signal = (memory: SharedArrayBuffer) => new Int32Array(memory, 4, 1);
  for (const capacity of [1, 16]) {
    const memory = new SharedArrayBuffer(32 + capacity);
    const writer = MailboxWriter.attach<number[]>(memory, { mechanism });
    const long = Array.from({ length: 10_000 }, (_, index) => index);
    const take = () => Atomics.store(signal(memory), 0, 0);
    assertFew(loadsOf(signal(memory), take, () => writer.write(long)));
  }
  const memory = new SharedArrayBuffer(33);
  const words = new Int32Array(memory, 0, 8);
  const reader = MailboxReader.attach(memory, { mechanism });
  let part = 0;
  const give = () => {
    if (words[layout.MAILBOX_SIGNAL_WORD] === 1) return;
    words[layout.MAILBOX_LENGTH_WORD] = 1;
    words[layout.MAILBOX_PART_COUNT_WORD] = 100_000;
    words[layout.MAILBOX_PART_INDEX_WORD] = part++;
    words[layout.MAILBOX_SIGNAL_WORD] = 1;
  };
  assertFew(loadsOf(signal(memory), give, () => reader.read()));
});
