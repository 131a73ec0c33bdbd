// What the inspector prints, and what it finds that no case is about.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { endFrame, extended, firstOf, part, pattern, pipe } from "../reference/builder.ts";
import { rungBits, stateAt, utf8, whole } from "../reference/builder.ts";
import { buildMailbox, buildSegment, type FramePlan, NOBODY, put } from "../reference/encode.ts";
import { recordAt, TOTAL_UNKNOWN } from "../reference/encode.ts";
import { look } from "../top/look.ts";
import { figuresOf } from "../top/rates.ts";
import { view } from "../top/view.ts";
import { brokenPort, makeGolden, NOW, twoPipes, waitingPipe } from "./golden_fixture.ts";
import { annotate, diff, differences, format, formatLines, inspect } from "./mod.ts";
import { USAGE } from "./options.ts";

for (const [name, text] of makeGolden()) {
  Deno.test(`golden/${name} is what golden_fixture.ts prints`, async () => {
    assertEquals(text, await Deno.readTextFile(new URL(`golden/${name}`, import.meta.url)));
  });
}

Deno.test("README.md shows what the inspector and top print", async () => {
  const page = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const shown = [...page.matchAll(/^```text\n([^]*?)^```$/gm)].map((match) => match[1]!);
  const [whole, fault, raw, top] = shown;
  assertEquals(shown.length, 4);
  assertEquals(whole, makeGolden().get("waiting_pipe.txt"));
  assert(makeGolden().get("wrong_head.txt")!.startsWith(`${fault}\n`));
  assertStringIncludes(formatLines(annotate(waitingPipe(), { now: NOW })), `\n\n${raw}\n`);
  assertEquals(top, topOfWaitingPipe());
});

/** What `./millrace top` shows of the pipe, after a look of a second before. */
function topOfWaitingPipe(): string {
  const control = 0x200;
  const before = waitingPipe();
  put(before, control, "ring_control", "tail", 704);
  put(before, control, "ring_control", "head", 640);
  put(before, recordAt(0), "endpoint_record", "bell", 3);
  const lookAt = (bytes: Uint8Array, now: number) =>
    look({ size: () => bytes.length, read: (at, size) => bytes.slice(at, at + size) }, now);
  return view(figuresOf(lookAt(waitingPipe(), NOW), lookAt(before, NOW - 1000)), "pipe.bin");
}

Deno.test("README.md has each option, and no other", async () => {
  const page = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const [table] = page.split("\n| option |")[1]!.split("\n\n");
  const named = [...table!.matchAll(/`(--[a-z-]+)/g)].map((match) => match[1]!);
  const taken = USAGE.match(/(?<= )--[a-z][a-z-]*/g)!.filter((option) => option !== "--help");
  assertEquals(named.sort(), taken.sort());
});

/** The notes and the clauses that they name. */
function notesOf(bytes: Uint8Array): (string | undefined)[] {
  const { notes, fault } = inspect(bytes);
  assertEquals(fault, null);
  return notes.map(({ clause, fact }) => clause ?? fact);
}

Deno.test("inspect takes a ring in the middle of a message as it is", () => {
  const frames = [firstOf(6, utf8("abc")), part(utf8("def")), whole("next")];
  const { bytes, control } = pipe({ states: [1, 1], frames });
  put(bytes, control, "ring_control", "head", 48);
  const found = inspect(bytes);
  assertEquals(found.fault, null);
  const ring = found.channels![0]!.ring!;
  assertEquals(ring.message_count, 2);
  assertEquals(ring.frames[0]!.progress, { received: 3, total: null });
  // The same frame where nothing was ever read.
  const { bytes: fresh } = pipe({ states: [1, 1], frames: frames.slice(1) });
  assertEquals(inspect(fresh).fault?.code, "frame.sequence");
});

Deno.test("inspect reads from start as long as the reader is vacant", () => {
  const { bytes, control } = pipe({ frames: [whole("one"), whole("two")] });
  put(bytes, control, "ring_control", "head", 32);
  const found = inspect(bytes);
  assertEquals(found.channels![0]!.ring!.message_count, 2);
  assertEquals(found.notes.map(({ clause }) => clause), ["ring.head_owner"]);
  put(bytes, recordAt(1), "endpoint_record", "state", 1);
  assertEquals(inspect(bytes).channels![0]!.ring!.message_count, 1);
});

Deno.test("inspect reads from where it stands what waits for an endpoint that comes back", () => {
  const frames = [whole("one"), whole("two")];
  const states = [1, stateAt(0, 2)];
  const segment = { records: [{}, { generation: 2, rung: rungBits(0, 200) }] };
  const { bytes, control } = pipe({ from: 64, states, frames, segment });
  const found = inspect(bytes);
  assertEquals(found.fault, null);
  const { generation, rung, state_name } = found.endpoints![1]!;
  assertEquals([generation, rung, state_name], [2, [0, 200], "vacant"]);
  assertEquals(found.channels![0]!.ring!.message_count, 2);
  assertEquals(found.channels![0]!.ring!.from, "head");
  assertEquals(found.notes.map(({ clause }) => clause), ["wait.rung"]);
  put(bytes, control, "ring_control", "head", 96 + 5);
  const second = inspect(bytes);
  assertEquals(second.fault, null);
  assertEquals(second.channels![0]!.ring!.message_count, 1);
  assertEquals(second.notes.map(({ clause }) => clause), ["ring.head_owner", "wait.rung"]);
  put(bytes, recordAt(1), "endpoint_record", "state", stateAt(1, 2));
  assertEquals(inspect(bytes).fault?.code, "ring.cursor");
});

Deno.test("inspect notes upper bits of a state that are not those of the generation", () => {
  const notes = (state: number, generation: number) =>
    notesOf(pipe({ states: [1, state], segment: { records: [{}, { generation }] } }).bytes);
  assertEquals(notes(stateAt(1, 0x1000005), 0x1000005), []);
  assertEquals(notes(stateAt(1, 4), 5), ["segment.state_reason"]);
  assertEquals(notes(stateAt(2, 4), 5), []); // Somebody is about to vacate it.
  assertEquals(notes(stateAt(2, 3), 5), ["segment.state_reason"]);
});

Deno.test("inspect shows the ends of channels that name nobody", () => {
  const ring = { writer: 0, reader: 1, capacity: 256 };
  const odd = { ...ring, kind: 9, reader: NOBODY };
  const { bytes } = buildSegment({ endpoints: 2, channels: [ring, odd, { ...odd, writer: 7 }] });
  const found = inspect(bytes);
  assertEquals(found.fault, null);
  assertEquals(found.endpoints!.map(({ peers }) => peers), [[1], [0]]);
  assert(format(found).includes("CHANNEL 1 unknown 9, from endpoint 0 to nobody, label 0"));
});

Deno.test("inspect says who asks to be rung, and how far off that is", () => {
  const { bytes, control } = pipe({ states: [1, 1], frames: [whole("one")] });
  put(bytes, control, "ring_control", "reader_wants", 0x31);
  const wants = () => inspect(bytes).channels![0]!.ring!.reader_wants;
  assertEquals(wants(), { value: 0x31, owner: 1, target: 48, missing: 16 });
  put(bytes, control, "ring_control", "reader_wants", 0x21);
  assertEquals(wants().missing, 0);
  put(bytes, control, "ring_control", "reader_wants", 0xfffffff1);
  assertEquals(wants().missing, -48);
  put(bytes, control, "ring_control", "reader_wants", 0);
  assertEquals(wants(), { value: 0, owner: 1, target: null, missing: null });
});

Deno.test("inspect notes requests that no endpoint makes", () => {
  const { bytes, control } = pipe({ states: [1, 1], frames: [whole("one")] });
  const noted = (word: string, value: number) => {
    put(bytes, control, "ring_control", word, value);
    const notes = notesOf(bytes);
    put(bytes, control, "ring_control", word, 0);
    return notes;
  };
  assertEquals(noted("reader_wants", 0x31), []);
  assertEquals(noted("reader_wants", 0x41), ["wait.reader_asks"]);
  assertEquals(noted("reader_wants", 0x30), ["reader_wants is no position with bit 0 set"]);
  assertEquals(noted("writer_wants", 0x21), []);
  assertEquals(noted("writer_wants", 0x31), ["wait.writer_more"]);
});

const breaches: [string, FramePlan[], number][] = [
  ["frame.pad", [{ kind: 6, payload: new Uint8Array(48), time: 7 }], 192],
  ["frame.end", [{ ...endFrame(), tag: 1 }], 0],
  ["ring.pad", [{ kind: 6, payload: new Uint8Array(48) }, whole("small")], 192],
  ["pipe.end", [endFrame(), whole("more")], 0],
  ["ring.room", [whole(pattern(112)), whole(pattern(96)), whole("")], 0],
];

for (const [clause, frames, start] of breaches) {
  Deno.test(`inspect notes a writer that breaks [${clause}]`, () => {
    assertEquals(notesOf(pipe({ states: [1, 1], frames, start }).bytes), [clause]);
  });
}

Deno.test("inspect notes nothing about a writer that keeps these clauses", () => {
  const pad = { kind: 6, payload: new Uint8Array(48) };
  const frames = [pad, whole(pattern(64)), endFrame()];
  assertEquals(notesOf(pipe({ states: [1, 1], frames, start: 192 }).bytes), []);
  const full = [whole(pattern(112)), whole(pattern(96)), endFrame()];
  assertEquals(notesOf(pipe({ states: [1, 1], frames: full }).bytes), []);
});

Deno.test("inspect notes reserved bytes, gaps, and what lies after the segment", () => {
  const { bytes } = pipe({ states: [1, 1] });
  assertEquals(notesOf(bytes), []);
  const changed = (offset: number) => {
    const copy = bytes.slice();
    copy[offset] = 1;
    return notesOf(copy);
  };
  assertEquals(changed(127), ["segment.write"]);
  assertEquals(changed(255), ["segment.write"]);
  assertEquals(changed(384 + 63), ["segment.write"]);
  assertEquals(changed(448), ["64 bytes that belong to nothing, 1 of them not 0"]);
  assertEquals(changed(512 + 4), ["1 byte between the control words not 0"]);
  const longer = new Uint8Array(bytes.length + 2);
  longer.set(bytes);
  longer[bytes.length] = 9;
  assertEquals(notesOf(longer), ["2 bytes of memory behind the segment, 1 of them not 0"]);
});

Deno.test("inspect shows what stands in front of a payload, and sizes that nobody knew", () => {
  const frames = [
    extended(firstOf(TOTAL_UNKNOWN, utf8("ab"), { codec: 1 })),
    part(utf8("c"), { codec: 1, flags: 0 }),
  ];
  const { bytes, at } = pipe({ states: [1, 1], frames });
  const found = inspect(bytes);
  assertEquals(found.fault, null);
  const ring = found.channels![0]!.ring!;
  assertEquals(ring.in_progress, { received: 3, total: "unknown" });
  const [first] = ring.frames;
  assertEquals(first!.flags_names, ["first", "extended"]);
  assertEquals(first!.extension, { offset: at[0]! + 16, size: 16, kind: 0x8000_0001 });
  assertEquals(first!.payload, { offset: at[0]! + 48, size: 2, form: "text", preview: '"ab"' });
  const text = format(found);
  assert(text.includes('{0x80000001: 16 bytes} "ab" (2/…)'), text);
  assert(text.includes("in progress: 3 of a size that its writer did not know"), text);
});

Deno.test("inspect names the shapes", () => {
  const shape = (endpoints: number, ...pairs: [number, number][]) => {
    const channels = pairs.map(([writer, reader]) => ({ writer, reader, capacity: 256 }));
    return inspect(buildSegment({ endpoints, channels }).bytes).shape;
  };
  assertEquals(shape(2, [0, 1]), "a pipe");
  assertEquals(shape(2, [0, 1], [1, 0]), "a port");
  assertEquals(shape(2, [1, 0], [0, 1]), "2 endpoints, 2 channels");
  assertEquals(shape(3, [0, 1], [1, 0], [0, 2], [2, 0]), "a hub of 2 clients");
  assertEquals(shape(3, [0, 1], [1, 0]), "3 endpoints, 2 channels");
  assertEquals(shape(1), "1 endpoint, 0 channels");
});

Deno.test("inspect guesses a mailbox only from the words of one", () => {
  const mailbox = buildMailbox({ size: 64, signal: 1, length: 2, part_count: 1 });
  assertEquals(inspect(mailbox).as, "mailbox");
  put(mailbox, 0, "mailbox_header", "signal", 2);
  assertEquals(inspect(mailbox).as, "segment");
  assertEquals(inspect(mailbox, { as: "mailbox" }).fault?.code, "mailbox.signal");
  assertEquals(inspect(new Uint8Array(64)).as, "segment");
});

Deno.test("inspect keeps as many frames as it is told, counts all, and shows the fault", () => {
  const frames = [whole("1"), whole("2"), whole("3"), { ...whole("4"), kind: 9 }];
  const { bytes } = pipe({ frames });
  const ring = inspect(bytes, { limit: 1 }).channels![0]!.ring!;
  assertEquals(ring.frame_count, 4);
  assertEquals(ring.frames.map(({ payload }) => payload.preview), ['"1"', '"4"']);
  assertEquals(ring.frames[1]!.fault, "frame.kind");
  const text = format(inspect(bytes, { limit: 1 }));
  assert(/2 frames more\n.*frame\.kind/.test(text), text);
});

Deno.test("inspect reckons times from the moment it is told [frame.time]", () => {
  const time = Number(BigInt(NOW) * 1000n & 0xffff_ffffn);
  const dateOf = (time: number) => {
    const { bytes } = pipe({ frames: [whole("x", { time })] });
    return inspect(bytes, { now: NOW }).channels![0]!.ring!.frames[0]!.date;
  };
  assertEquals(dateOf(0), null);
  const at = "2026-02-03T04:05:06.000000Z";
  assertEquals(dateOf(time), at);
  assertEquals(dateOf((time - 1) >>> 0), "2026-02-03T04:05:05.999999Z");
  // As far back as a signed number goes; a microsecond more is as far ahead, and counts as now.
  assertEquals(dateOf((time - 0x7fff_ffff) >>> 0), "2026-02-03T03:29:18.516353Z");
  assertEquals(dateOf((time - 0x8000_0000) >>> 0), at);
  assertEquals(dateOf((time + 1) >>> 0), at);
});

Deno.test("format shows no control characters of a payload, and colours only when told to", () => {
  const { bytes } = pipe({ frames: [whole("\u001b[2J\u202e\u0085")] });
  const found = inspect(bytes);
  assertEquals(/[^\P{C}\n]/u.test(format(found)), false);
  assert(format(found).includes("\\u001b[2J\\u{202e}\\u{85}"));
  assert(format(found, { color: true }).includes("\x1b["));
});

Deno.test("inspect works on shared memory and leaves it as it is", () => {
  const shared = new Uint8Array(new SharedArrayBuffer(1280));
  shared.set(waitingPipe());
  const options = { now: NOW };
  assertEquals(inspect(shared, options), inspect(waitingPipe(), options));
  assertEquals([...shared], [...waitingPipe()]);
});

// The dumps: every byte once, and named for what it is.

Deno.test("annotate gives every byte to one line, in order", () => {
  for (
    const bytes of [waitingPipe(), brokenPort(), buildMailbox({ size: 40 }), new Uint8Array(0)]
  ) {
    let at = 0;
    for (const { offset, size } of annotate(bytes)) {
      assertEquals(offset, at);
      assert(size > 0);
      at += size;
    }
    assertEquals(at, bytes.length);
  }
});

Deno.test("annotate shows only a channel when asked, and short what is long", () => {
  const places = new Set(annotate(brokenPort(), { channel: 1 }).map(({ place }) => place));
  assertEquals([...places], ["channel 1", "channel 1, frame at 0x740"]);
  const { bytes } = pipe({ capacity: 1024, frames: [whole(new Uint8Array(480).fill(7))] });
  const lines = (most: number) =>
    annotate(bytes, { lines: most }).filter(({ field }) => field === "payload");
  assertEquals(lines(3).map(({ size }) => size), [16, 16, 16, 432]);
  assertEquals(lines(3).at(-1)!.hex, "… 432 bytes more");
  assertEquals(lines(30).length, 30);
});

Deno.test("formatLines aligns the offsets of a large memory", () => {
  const { bytes } = pipe({ capacity: 2 ** 17 });
  assert(formatLines(annotate(bytes)).startsWith("header\n00000  4d 49"));
});

Deno.test("diff says nothing of memories that are equal", () => {
  assertEquals(diff(waitingPipe(), waitingPipe()), "");
  assertEquals(differences(new Uint8Array(0), new Uint8Array(0)), []);
});

Deno.test("diff names fields by what either memory has there", () => {
  const [must, is] = twoPipes();
  const names = (a: Uint8Array, b: Uint8Array) =>
    differences(a, b).map(({ expected, got }) => [expected.field, got.field]);
  assertEquals(names(must, is), [["tail", "tail"], ["tag", "free"]]);
  assertEquals(names(is, must), [["tail", "tail"], ["free", "tag"]]);
  const text = diff(is, must);
  assert(text.includes("got       05 00 00 00  5  (channel 0, frame at 0x400: tag)"), text);
});

Deno.test("diff says that one memory is longer, and stops after 64 differences", () => {
  assertEquals(diff(new Uint8Array(4), new Uint8Array(5)), "4 bytes expected, got 5\n");
  const { bytes, data } = pipe({ capacity: 2048 });
  const other = bytes.slice();
  other.fill(1, data);
  const text = diff(bytes, other);
  assertEquals(text.match(/^0x/gm)?.length, 64);
  assert(text.endsWith("… 64 more differences\n"), text);
});

Deno.test("diff shows states by their names", () => {
  const { bytes } = pipe({ states: [1, 1] });
  const other = bytes.slice();
  put(other, 128, "endpoint_record", "state", 0x1003);
  const [found] = differences(bytes, other);
  assertEquals(found!.expected.value, "attached");
  assertEquals(found!.got.value, "failed: ring.cursor");
});
