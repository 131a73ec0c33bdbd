/** What a call answers first if several answers are true, and what it hands out with the answer. */

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ClosedError, MillraceError, PeerFailedError } from "../error.ts";
import {
  assertCode,
  codeOf,
  onTailLoads,
  pattern,
  pipe,
  Scribe,
  scribed,
} from "../testing/fixture.ts";
import { layout } from "../memory/layout.ts";
import type { Reader, Writer } from "./ends.ts";
import { Port } from "../port/port.ts";
import { failEndpoint } from "../wait/state.ts";
import type { Segment } from "../memory/segment.ts";
import { abandon, claim, finish, peek, publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { readInto, readMessage, tryWriteMessage, writeMessage } from "../more/raw.ts";
import { writeMany } from "../more/many.ts";

const NOW = { timeout: 0 };
const BOTH = [false, true];
const STATES: [word: number, own: string | undefined, peer: string | undefined][] = [
  [1, undefined, undefined],
  [2, "pipe.closed", "peer.closed"],
  [3 | (67 << 8), "pipe.failed", "peer.failed"],
];

const utf8 = (text: string) => [...new TextEncoder().encode(text)];

function setState(segment: Segment, index: number, word: number): void {
  segment.words(128 + index * 128, 128)[layout.ENDPOINT_STATE_WORD] = word;
}

function codeIn(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    return error.code;
  }
}

const writes: ((writer: Writer) => unknown)[] = [
  (writer) => writer.write(pattern(1), NOW),
  (writer) => writer.tryWrite(pattern(1)),
  (writer) => writeMany(writer, [pattern(1)], NOW),
  (writer) => writeMessage(writer, { payload: pattern(1) }, NOW),
  (writer) => tryWriteMessage(writer, { payload: pattern(1) }),
  (writer) => claim(writer, 1, NOW) && abandon(writer),
  (writer) => tryClaim(writer, 1) && abandon(writer),
];

Deno.test("[pipe.first_answer] a writer answers by the first row that holds", async () => {
  let rows = 0;
  for (const closed of BOTH) {
    for (const found of ["nothing", "fault", "ended"]) {
      for (const [own, ownCode] of STATES) {
        for (const [peer, , peerCode] of STATES) {
          const { segment, writer } = pipe({ codec: "bytes", start: 0 });
          if (found === "fault") {
            writer.write(pattern(100));
            segment.words(512, 512)[layout.RING_HEAD_WORD] = 8;
            assertCode(() => writer.tryWrite(pattern(112)), "ring.cursor");
          }
          if (found === "ended") writer.end();
          if (closed) writer.close();
          setState(segment, 0, own);
          setState(segment, 1, peer);
          const first = closed
            ? "pipe.closed"
            : found === "fault"
            ? "ring.cursor"
            : found === "ended"
            ? "pipe.ended"
            : ownCode ?? peerCode;
          if (first === undefined) continue;
          const what = `${closed} ${found} ${own} ${peer}`;
          for (const write of writes) assertEquals(codeIn(() => write(writer)), first, what);
          assertEquals(await codeOf(writer.writeAsync(pattern(1), NOW)), first, what);
          // A second `end` does nothing, whatever has happened since. Nor does an `end` that nobody
          // is left to read. [pipe.end_closed]
          const late = !closed && /\.(closed|failed)$/.test(first);
          const end = found === "ended" || late ? undefined : first;
          assertEquals(codeIn(() => writer.end()), end, what);
          if (late) assertEquals(codeIn(() => writer.tryWrite(pattern(1))), "pipe.ended", what);
          assertEquals(writer.ended, found === "ended" || late, what);
          rows++;
        }
      }
    }
  }
  assertEquals(rows, 2 * 3 * 9 - 1);
});

Deno.test("[pipe.end_closed] two sides end and close, in any order", async () => {
  for (const first of BOTH) {
    const here = Port.create<number>();
    const there = Port.attach<number>(here.memory);
    const [a, b] = first ? [here, there] : [there, here];
    a.write(1);
    a.end();
    assertEquals([b.tryRead(), b.tryRead(), b.ended], [1, undefined, true]);
    b.write(2);
    assertEquals(a.tryRead(), 2); // everything that it wants to know
    a.close();
    b.end();
    await b.endAsync();
    assertCode(() => b.write(3), "pipe.ended");
    assertEquals(codeIn(() => b.tryRead()), undefined);
    b.close();
  }
});

Deno.test("[pipe.end_closed] an end in a finally hides no error", async () => {
  for (const endpoint of [0, 1]) {
    const port = Port.create<string>({ capacity: 256 });
    using _there = Port.attach<string>(port.memory);
    const end = async () => {
      try {
        throw new RangeError("the first");
      } finally {
        failEndpoint(port.segment, endpoint, "peer.lost");
        port.end();
        await port.endAsync();
      }
    };
    await assertRejects(end, RangeError, "the first");
    assertCode(() => port.write("late"), "pipe.ended");
    port.close();
  }
});

Deno.test("[pipe.end_closed] endAsync rejects where posts that it waits for are lost", async () => {
  const lines = async (late: boolean) => {
    const here = Port.create<string>({ capacity: 256 });
    const there = Port.attach<string>(here.memory);
    while (here.tryWrite("fill"));
    const posted = codeOf(here.postMessage("lost"));
    await new Promise((resolve) => setTimeout(resolve, 1));
    const ending = late ? undefined : codeOf(here.endAsync());
    there.close();
    return [await posted, await (ending ?? codeOf(here.endAsync()))];
  };
  assertEquals(await lines(false), ["peer.closed", "peer.closed"]);
  assertEquals(await lines(true), ["peer.closed", "no error"]);
});

Deno.test("[pipe.end_closed] an end after a write that was given up", async () => {
  const { writer, reader } = pipe<Uint8Array>({ codec: "bytes" });
  const giving = new AbortController();
  const written = codeOf(writer.writeAsync(pattern(1000), { signal: giving.signal }));
  const ending = writer.endAsync();
  reader.close();
  giving.abort();
  await written;
  await ending;
  assertCode(() => writer.write(pattern(1)), "pipe.ended");
});

const reads: ((reader: Reader) => unknown)[] = [
  (reader) => codeIn(() => reader.tryRead()),
  (reader) => codeIn(() => reader.read(NOW)),
  (reader) => codeIn(() => reader.read({ timeout: 1 })),
  (reader) => reader.readAsync(NOW).catch((error) => error.code),
  (reader) => reader.readAsync({ timeout: 1 }).catch((error) => error.code),
];

Deno.test("[pipe.first_answer] a reader answers by the first row that holds", async () => {
  for (const read of reads) {
    for (const closed of BOTH) {
      for (const batch of BOTH) {
        for (const inRing of ["nothing", "message", "lost message", "fault", "ended"]) {
          for (const [own, ownCode] of STATES) {
            for (const [peer, , peerCode] of STATES) {
              const { segment, reader, scribe } = scribed();
              if (batch) {
                scribe.frame({ codec: 3, payload: utf8("[1,2]") }).publish();
                assertEquals(reader.tryRead(), 1);
              }
              if (inRing === "message") scribe.frame({ codec: 2, payload: utf8("7") });
              if (inRing === "lost message") scribe.frame({ codec: 9 });
              if (inRing === "fault") scribe.frame({ kind: 77 });
              if (inRing === "ended") scribe.frame({ kind: 2, flags: 0 });
              scribe.publish();
              if (closed) {
                // What the reader has found before its close does not count any more.
                if (inRing !== "nothing") await read(reader);
                reader.close();
              }
              setState(segment, 1, own);
              setState(segment, 0, peer);
              const expected: unknown[] = [];
              if (!closed && batch) expected.push(2);
              if (!closed && inRing === "message") expected.push(7);
              if (!closed && inRing === "lost message") expected.push("message.codec");
              const last = closed
                ? "pipe.closed"
                : inRing === "fault"
                ? "frame.kind"
                : inRing === "ended"
                ? undefined
                : ownCode ?? peerCode;
              while (expected.length < 4) expected.push(last);
              const got: unknown[] = [];
              for (let i = 0; i < 4; i++) got.push(await read(reader));
              assertEquals(got, expected, `${closed} ${batch} ${inRing} ${own} ${peer}`);
            }
          }
        }
      }
    }
  }
});

Deno.test("closing an endpoint that is marked failed leaves the mark", () => {
  const { segment, writer, reader } = pipe();
  for (const [end, index] of [[writer, 0], [reader, 1]] as const) {
    failEndpoint(segment, index, "peer.lost");
    end.close();
    assertEquals(segment.words(128 + index * 128, 128)[1], 3 | (67 << 8));
  }
  assertCode(() => reader.read(), "pipe.closed");
  assertCode(() => writer.write(1), "pipe.closed");
});

Deno.test("[pipe.failed_reason] a reason is named, or a number, or none", () => {
  const rows = [[67, "peer.lost"], [0, undefined], [9999, 9999], [0xffffff, 0xffffff]] as const;
  for (const [value, reason] of rows) {
    const { segment, writer, reader } = pipe();
    const word = 3 | (value << 8);
    setState(segment, 0, word);
    const peer = assertThrows(() => reader.read(), PeerFailedError);
    assertEquals([peer.code, peer.reason], ["peer.failed", reason]);
    const own = assertThrows(() => writer.write(1), ClosedError);
    assertEquals([own.code, own.reason], ["pipe.failed", reason]);
  }
});

Deno.test("a call that is refused for its timeout has done nothing", async () => {
  const { segment, writer, reader } = pipe({ codec: "bytes", start: 0 });
  const control = segment.words(512, 512);
  const none = { timeout: -1 };
  for (const call of [() => writer.write(pattern(1000), none), () => claim(writer, 1, none)]) {
    assertThrows(call, RangeError);
  }
  await assertRejects(() => writer.writeAsync(pattern(1000), none), RangeError);
  writer.write(pattern(3));
  assertEquals(control[layout.RING_TAIL_WORD], 32);
  const target = new Uint8Array(9);
  for (
    const call of [
      () => reader.read(none),
      () => readMessage(reader, none),
      () => readInto(reader, target, none),
      () => peek(reader, none),
    ]
  ) assertThrows(call, RangeError);
  assertEquals([control[layout.RING_HEAD_WORD], reader.tryRead()], [0, pattern(3)]);
});

/** Publishes what the peer has written so far, just before the second load of the peer's `tail`. */
function publishingLate(scribe: Scribe, run: () => void): void {
  let loads = 0;
  const before = (count: number) => {
    loads = count;
    if (count === 2) scribe.publish();
  };
  onTailLoads(scribe, before, run);
  assertEquals(loads, 2);
}

Deno.test("[pipe.look_again] one look more after a final state, and then the state", () => {
  const late: [write: (scribe: Scribe) => void, answer: unknown][] = [
    [(scribe) => scribe.frame({ codec: 2, payload: utf8("7") }), 7],
    [(scribe) => scribe.frame({ codec: 9 }), "message.codec"],
    [(scribe) => scribe.frame({ kind: 2, flags: 0 }), undefined],
    [(scribe) => scribe.frame({ kind: 77 }), "frame.kind"],
    [(scribe) => scribe.frame({ kind: 128 }), "peer.closed"],
    [(scribe) => scribe.frame({ flags: 1, total: 9, payload: [1] }), "peer.closed"],
    [() => {}, "peer.closed"],
  ];
  const verbs = [
    (reader: Reader) => reader.tryRead(),
    (reader: Reader) => reader.read(NOW),
    (reader: Reader) => reader.read(),
  ];
  for (const verb of verbs) {
    for (const [write, answer] of late) {
      const { segment, reader, scribe } = scribed();
      setState(segment, 0, 2);
      write(scribe);
      publishingLate(scribe, () => assertEquals(codeIn(() => verb(reader)), answer));
    }
  }
});

Deno.test("[pipe.keep_parts] they are dropped with the report of a state", () => {
  for (const [index, code] of [[0, "peer.failed"], [1, "pipe.failed"]] as const) {
    for (const more of ["last", "end", "cancel"]) {
      const { segment, reader, scribe } = scribed();
      scribe.frame({ flags: 1, total: 2, payload: [1] }).publish();
      assertEquals(reader.tryRead(), undefined);
      const word = 3 | (66 << 8);
      setState(segment, index, word);
      assertCode(() => reader.tryRead(), code);
      // A peer that is gone should not write any more. What it writes all the same is no message.
      if (more === "last") scribe.frame({ flags: 2, payload: [2] }).frame({ payload: [3] });
      if (more === "cancel") scribe.frame({ flags: 6 }).frame({ payload: [3] });
      if (more === "end") scribe.frame({ kind: 2, flags: 0 });
      scribe.publish();
      assertEquals(reader.tryRead(), more === "end" ? undefined : Uint8Array.of(3));
      assertEquals(reader.ended, more === "end");
    }
  }
});

Deno.test("[pipe.owed] the cancel is published also where the next message finds no room", () => {
  const nexts = [
    (writer: Writer) => assertEquals(tryClaim(writer, 112), undefined),
    (writer: Writer) => assertEquals(writer.tryWrite(pattern(112)), false),
    (writer: Writer) => assertCode(() => claim(writer, 112, NOW), "wait.timeout"),
    (writer: Writer) => assertCode(() => writer.write(pattern(112), NOW), "wait.timeout"),
    (writer: Writer) => {
      tryClaim(writer, 0);
      abandon(writer);
    },
  ];
  for (const next of nexts) {
    const { segment, writer, reader } = pipe({ codec: "bytes", start: 0 });
    assertCode(() => writer.write(pattern(1000), NOW), "wait.timeout");
    next(writer);
    assertEquals(segment.words(512, 512)[layout.RING_TAIL_WORD], 208);
    assertCode(() => reader.tryRead(), "message.cancelled");
    assertEquals(reader.tryRead(), undefined);
  }
});

Deno.test("[pipe.close] drops an open claim, and what is finished and not published", () => {
  const { segment, writer, reader } = pipe({ codec: "bytes", start: 0 });
  claim(writer, 8);
  finish(writer);
  claim(writer, 8);
  const before = segment.bytes(1024, 256).slice();
  writer.close();
  assertCode(() => writer.write(pattern(1)), "pipe.closed");
  assertCode(() => finish(writer), "pipe.closed");
  assertCode(() => publish(writer, 3), "pipe.closed");
  assertCode(() => abandon(writer), "pipe.closed");
  publish(writer); // [pipe.publish_none]
  assertEquals(segment.words(512, 512)[layout.RING_TAIL_WORD], 0);
  assertEquals(segment.bytes(1024, 256), before);
  assertCode(() => reader.tryRead(), "peer.closed");
  // A reader closes while a frame is lent.
  const lending = pipe({ codec: "bytes" });
  lending.writer.write(pattern(3));
  peek(lending.reader);
  lending.reader.close();
  assertCode(() => tryPeek(lending.reader), "pipe.closed");
  assertCode(() => lending.reader.tryRead(), "pipe.closed");
  assertCode(() => release(lending.reader), "pipe.closed");
});

Deno.test("[pipe.peer_gone] a claim is not placed once the reader was found gone", () => {
  const a = Port.create({ codec: "bytes" });
  const b = Port.attach(a.memory);
  claim(a, 8);
  b.close();
  assertCode(() => a.tryRead(), "peer.closed");
  assertCode(() => publish(a), "peer.closed");
  abandon(a);
  assertEquals(a.segment.words(512, 512)[layout.RING_TAIL_WORD], 0);
});

Deno.test("[ring.fault] nothing is stored in the ring any more, wants included", async () => {
  const { segment, reader, scribe } = scribed({ capacity: 1024 });
  const pending = codeOf(reader.readAsync());
  scribe.frame({ flags: 1, total: 4, payload: [1] }).frame({ flags: 0, payload: [2] });
  scribe.frame({ kind: 77 }).publish();
  const area = segment.bytes(512, 1536);
  const before = area.slice();
  assertCode(() => reader.tryRead(), "frame.kind");
  assertEquals(await pending, "frame.kind");
  assertEquals(await codeOf(reader.readAsync({ timeout: 1 })), "frame.kind");
  assertCode(() => reader.read({ timeout: 1 }), "frame.kind");
  reader.close();
  assertCode(() => reader.read(), "pipe.closed");
  assertEquals(area, before);
});

Deno.test("[pipe.close] takes every wish back, and stores nothing from then on", async () => {
  const here = Port.create({ capacity: 256 });
  Port.attach(here.memory);
  while (here.tryWrite("fill"));
  const pending = [here.readAsync(), here.writeAsync(1)].map(codeOf);
  const wishes = [
    here.segment.words(512, 512).subarray(layout.RING_WRITER_WANTS_WORD),
    here.segment.words(512 + 512 + 256, 512).subarray(layout.RING_READER_WANTS_WORD),
  ];
  await new Promise((resolve) => setTimeout(resolve, 1));
  assertEquals(wishes.map(([wish]) => wish !== 0), [true, true]);
  here.close();
  assertEquals(wishes.map(([wish]) => wish), [0, 0]);
  // Whoever owns this memory from now on decides what is in it.
  for (const wish of wishes) wish[0] = 77;
  assertEquals(await Promise.all(pending), ["pipe.closed", "pipe.closed"]);
  assertEquals(wishes.map(([wish]) => wish), [77, 77]);
});
