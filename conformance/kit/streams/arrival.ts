/**
 * Scripts of streams: what arrives is cut anywhere, ends anywhere, or is no stream.
 *
 * @module
 */

import { fromHex, toHex } from "../../reference/bytes.ts";
import type { Item } from "../../reference/case.ts";
import { kindOf, LAST, withPreamble } from "../../reference/encode.ts";
import { FIRST } from "../../reference/encode.ts";
import { bytes, chunks, count, END, frame, HI, message, preface } from "../../stream/builder.ts";
import { report, SMALL, stated, text } from "../../stream/builder.ts";
import { valueOf } from "../../reference/layout.ts";
import type { Arena } from "../arena.ts";
import { RICH } from "../scripts/cbor.ts";
import { lacksOption } from "../static_level.ts";
import { Random } from "../live/workload.ts";
import { during, patience, places, readBefore, sizeOfPart, sleep } from "./stage.ts";
import { type StreamScript, streamScript, StreamStage, TRACK, within } from "./stage.ts";

/** How often a sweep plays, where it does not play everywhere. */
const SOME = 8;
const ROOMY = { largest: 128, window: 8192 };
const PREFACE_SIZE = 32;
const CBOR = valueOf("codec", "cbor");
/** An array without its end. */
const OPEN = Uint8Array.of(0x9f, 1);

export const ARRIVAL_SCRIPTS: StreamScript[] = [
  streamScript(
    "preface_first",
    "A side states its preface at once, and takes that of its peer byte by byte.",
    "stream.preface stream.preface_check stream.pieces",
    prefaceFirst,
  ),
  streamScript(
    "preface_silent",
    "A peer that says nothing: a deadline passes, and nothing else.",
    "wait.deadline stream.preface",
    prefaceSilent,
  ),
  streamScript(
    "preface_text",
    "What arrives is no stream: that shows with its eighth byte.",
    "stream.preface_check stream.fail",
    prefaceText,
  ),
  streamScript(
    "preface_cut",
    "A peer that goes in the middle of its preface, at some byte.",
    "stream.lost",
    (arena) => cutPreface(arena),
  ),
  streamScript(
    "cut",
    "A frame arrives in two pieces, cut at every byte.",
    "stream.pieces stream.whole",
    cutInTwo,
  ),
  streamScript(
    "bytes",
    "Messages of one frame and of several arrive byte by byte.",
    "stream.pieces stream.whole",
    byteByByte,
  ),
  streamScript(
    "truncated",
    "The peer's byte stream ends at some byte: what was whole is delivered.",
    "stream.lost stream.whole",
    (arena) => sweep(arena, "ends", 31),
  ),
  streamScript(
    "killed",
    "The connection breaks at some byte: nothing is delivered that was not whole.",
    "stream.lost stream.whole",
    (arena) => sweep(arena, "breaks", 37),
  ),
  streamScript(
    "garbage",
    "Random bytes from some byte on: a documented end, and nothing that was not sent.",
    "stream.check stream.fault stream.fail",
    garbage,
  ),
  streamScript(
    "kinds",
    "Frames of unknown kinds: those from 128 on are skipped, the others are faults.",
    "stream.check stream.fault stream.fail",
    kinds,
  ),
  streamScript(
    "too_large",
    "Messages above the limit of the reader cost those messages alone.",
    "pipe.limit pipe.limit_unknown stream.given_back",
    tooLarge,
  ),
  streamScript(
    "cbor",
    "CBOR that is none costs itself alone, in one frame and in several.",
    "codec.bad_cbor codec.cbor stream.given_back",
    values,
    { declinedBy: (hello) => lacksOption(hello, ["values", "cbor"]) },
  ),
  streamScript(
    "stopped",
    "A peer that stops in the middle of a frame: a read ends in time, and the next goes on.",
    "wait.deadline stream.whole stream.pieces",
    stopped,
  ),
  streamScript(
    "half_closed",
    "Half of a connection is of no use: who reads its end writes no more, either.",
    "stream.lost",
    halfClosed,
  ),
];

async function prefaceFirst(arena: Arena): Promise<void> {
  const order = { own: { largest: 256, window: 1024 }, peer: undefined };
  await StreamStage.with(arena, order, async (stage) => {
    const clause = "[stream.preface] before the peer has said anything";
    await stage.takes(clause, [stated(order.own)]);
    await stage.sendsPieces(1, preface());
    await stage.ready();
    await stage.sends(text("hi", 5));
    await stage.reads("[stream.preface_check] behind a preface in pieces", [HI], "nothing");
  });
}

async function prefaceSilent(arena: Arena): Promise<void> {
  const waitMs = 60;
  await StreamStage.with(arena, { peer: undefined, timeout_ms: waitMs }, async (stage) => {
    const begun = performance.now();
    const opened = await within(stage.opened, patience.longMs);
    stage.demand(opened !== undefined, "[wait.deadline] open does not come back");
    if (opened === "ok") {
      const got = await during("[wait.deadline] read", stage.session.read(waitMs));
      stage.expect("end" in got ? got.end : "ok", "nothing", "[stream.preface] read");
    } else stage.expect(opened!, "wait.timeout", "[wait.deadline] open");
    const took = performance.now() - begun;
    const fact = `[wait.deadline] ${waitMs} ms took ${took.toFixed()} ms`;
    stage.demand(took >= waitMs / 2 && took < waitMs + patience.soonMs, fact);
  });
}

async function prefaceText(arena: Arena): Promise<void> {
  const greetings = ["SSH-2.0-OpenSSH_9.2\r\n", "GET / HTTP/1.1\r\n\r\n", "\0\0\0\0\0\0\0\0"];
  for (const greeting of greetings) {
    await StreamStage.with(arena, { peer: undefined }, async (stage) => {
      stage.step = JSON.stringify(greeting.slice(0, 8)) + ": ";
      await stage.sends(toHex(new TextEncoder().encode(greeting.slice(0, 8))));
      const what = "[stream.preface_check] no magic";
      await stage.reads(what, [], "peer.failed", "stream.magic");
      await stage.takes("[stream.fail] no magic", [stated(), { fail: "stream.magic" }], {
        ends: true,
      });
    });
  }
}

async function cutPreface(arena: Arena): Promise<void> {
  for (const size of places(PREFACE_SIZE, SOME, 29)) {
    await StreamStage.with(arena, { peer: undefined }, async (stage) => {
      stage.step = `${size} bytes of a preface: `;
      await stage.sends(toHex(fromHex(preface()).slice(0, size)));
      await stage.wire.end();
      await stage.reads("[stream.lost]", [], "peer.failed", "peer.lost");
    });
  }
}

async function cutInTwo(arena: Arena): Promise<void> {
  const [plain, size] = [bytes(20, 7), 48];
  await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
    await stage.ready();
    for (let at = 1; at < size; at++) {
      stage.step = `cut at byte ${at}: `;
      const reading = stage.session.read(patience.longMs);
      const all = fromHex(plain);
      await stage.sends(toHex(all.slice(0, at)));
      await sleep(1);
      await stage.sends(toHex(all.slice(at)));
      const got = await reading;
      const must = { items: [message({ tag: 7, count: 20 })] };
      stage.expect("item" in got ? { items: [got.item] } : { items: [], ...got }, must, READ);
    }
  });
}

const READ = "[stream.pieces] read";

async function byteByByte(arena: Arena): Promise<void> {
  await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
    await stage.ready();
    const items = TRACK.flatMap((part) => part.items);
    const reading = stage.reads(READ, items, "ended");
    reading.catch(() => {});
    await stage.sendsPieces(1, ...TRACK.map(({ hex }) => hex));
    await reading;
  });
}

/** The track up to some byte, and then its end or nothing at all. */
async function sweep(arena: Arena, how: "ends" | "breaks", seed: number): Promise<void> {
  const all = fromHex(TRACK.map(({ hex }) => hex).join(""));
  const size = TRACK.reduce((sum, part) => sum + sizeOfPart(part), 0);
  for (const at of places(size, SOME, seed)) {
    await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
      stage.step = `behind byte ${at}: `;
      await stage.ready();
      await stage.sends(toHex(all.slice(0, at)));
      if (how === "ends") await stage.wire.end();
      else stage.wire.kill();
      const { items, hasEnded } = readBefore(at);
      if (hasEnded) await stage.reads("[stream.whole] read", items, "ended");
      else await stage.reads("[stream.lost] read", items, "peer.failed", "peer.lost");
    });
  }
}

/** Codes by which reading may end where anything at all has come. */
const ENDS = /^(?:nothing|ended|peer\.failed|peer\.closed|pipe\.failed|(?:frame|stream)\.\w+)$/;

async function garbage(arena: Arena): Promise<void> {
  const all = fromHex(TRACK.map(({ hex }) => hex).join(""));
  for (const at of places(all.length, SOME, 41)) {
    const random = new Random(1000 + at);
    const noise = Uint8Array.from({ length: 200 }, () => random.next() >>> 11);
    await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
      stage.step = `garbage from byte ${at} on: `;
      await stage.ready();
      await stage.sends(toHex(all.slice(0, at)), toHex(noise));
      await stage.wire.end();
      const { items } = readBefore(at);
      await readsOnly(stage, items, ENDS);
    });
  }
}

/** Reads to the end: these messages first, and by then an end that is documented. */
async function readsOnly(stage: StreamStage, items: Item[], ends: RegExp): Promise<void> {
  for (const [index, item] of items.entries()) {
    const got = await stage.read(patience.longMs);
    const must = { items: [item] };
    const what = `[stream.fault] message ${index}`;
    stage.expect("item" in got ? { items: [got.item] } : { items: [], ...got }, must, what);
  }
  for (let left = 64; left > 0; left--) {
    const got = await stage.read(patience.longMs);
    if ("item" in got) continue; // noise that happens to be a message, or a report
    stage.demand(got.end !== "nothing", "[stream.fault] a read goes on waiting");
    stage.demand(ends.test(got.end), `[stream.check] it ends with ${got.end}`);
    return;
  }
  stage.demand(false, "[stream.fault] messages without end");
}

async function kinds(arena: Arena): Promise<void> {
  await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
    await stage.ready();
    for (const kind of [128, 200, 255]) {
      const odd = frame({ kind, flags: 255, codec: 9, reserved: 7, payload: count(21) });
      await stage.sends(odd.slice(0, -2) + "ff", text("hi", 5));
      await stage.reads(`[stream.check] behind a frame of kind ${kind}`, [HI], "nothing");
    }
  });
  const known = new Set([1, 2, 3, 4, 5, 16, 17, 18]);
  const wrong = Array.from({ length: 128 }, (_, kind) => kind).filter((kind) => !known.has(kind));
  for (const kind of places(wrong.length, SOME, 43).map((index) => wrong[index]!)) {
    await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
      stage.step = `kind ${kind}: `;
      await stage.sends(text("hi", 5), frame({ kind, flags: LAST + FIRST }), text("hi", 5));
      await stage.ready();
      await stage.reads("[stream.check] [stream.fault] read", [HI], "peer.failed", "frame.kind");
      const sent = [stated(ROOMY), { fail: "frame.kind" }];
      await stage.takes("[stream.fail] an unknown kind", sent, { ends: true });
    });
  }
}

async function tooLarge(arena: Arena): Promise<void> {
  const data = kindOf("data");
  await StreamStage.with(arena, { own: ROOMY, limit: 60 }, async (stage) => {
    await stage.ready();
    const size = report("message.size");
    await stage.sends(bytes(60), bytes(61), text("hi", 5));
    const most = message({ count: 60 });
    await stage.reads("[pipe.limit] a frame above it", [most, size, HI], "nothing");
    await stage.sends(...chunks(30, 30, 1), text("hi", 5));
    await stage.reads("[pipe.limit] a total above it", [size, HI], "nothing");
    const unknown = withPreamble(2 ** 64, count(40));
    unknown.fill(255, 0, 8);
    const first = frame({ kind: data, flags: FIRST, payload: unknown });
    const rest = [0, LAST].map((flags) => frame({ kind: data, flags, payload: count(20) }));
    await stage.sends(first, ...rest, text("hi", 5));
    await stage.reads("[pipe.limit_unknown] a sum above it", [size, HI], "nothing");
  });
}

async function values(arena: Arena): Promise<void> {
  const rich = fromHex(RICH);
  const bad = [rich.slice(0, -1), Uint8Array.from([...rich, 0])];
  const item = message({ codec: CBOR, tag: 7, cbor: RICH });
  await StreamStage.with(arena, { own: ROOMY, values: true }, async (stage) => {
    await stage.ready();
    const lost = report("message.codec");
    for (const [index, payload] of bad.entries()) {
      stage.step = `bad payload ${index}: `;
      await stage.sends(text("hi", 5), ...inParts(payload), ...inParts(rich), text("hi", 5));
      await stage.reads("[codec.bad_cbor] read", [HI, lost, item, HI], "nothing");
    }
    stage.step = "";
    const short = frame({ kind: kindOf("data"), flags: FIRST + LAST, codec: CBOR, payload: OPEN });
    await stage.sends(short, short, text("hi", 5), END);
    await stage.reads("[codec.bad_cbor] two in a frame each", [lost, lost, HI], "ended");
  });
}

/** The frames of a message of CBOR. */
function inParts(payload: Uint8Array): string[] {
  const { largest } = ROOMY;
  const plan = { kind: kindOf("data"), codec: CBOR, tag: 7 };
  const size = largest / 2;
  const first = withPreamble(payload.length, payload.slice(0, size));
  return [
    frame({ ...plan, flags: FIRST, payload: first }),
    frame({ ...plan, flags: 0, payload: payload.slice(size, 2 * size) }),
    frame({ ...plan, flags: LAST, payload: payload.slice(2 * size) }),
  ];
}

async function stopped(arena: Arena): Promise<void> {
  const [first, middle, last] = chunks(40, 20, 6).map(fromHex);
  const all = Uint8Array.of(...first!, ...middle!, ...last!);
  const waitMs = 40;
  for (const at of places(all.length, 6, 47)) {
    await StreamStage.with(arena, { own: ROOMY }, async (stage) => {
      stage.step = `behind byte ${at}: `;
      await stage.ready();
      await stage.sends(toHex(all.slice(0, at)));
      const begun = performance.now();
      const got = await during("[wait.deadline] read", stage.session.read(waitMs));
      const took = performance.now() - begun;
      stage.expect("end" in got ? got.end : "a message", "nothing", "[stream.whole] read");
      const isInTime = took >= waitMs - 2 && took < waitMs + patience.soonMs;
      const fact = `[wait.deadline] a read of ${waitMs} ms took ${took.toFixed()} ms`;
      stage.demand(isInTime, fact);
      await stage.sends(toHex(all.slice(at)), END);
      await stage.reads("[stream.pieces] the rest", [message({ count: 66 })], "ended");
    });
  }
}

async function halfClosed(arena: Arena): Promise<void> {
  await StreamStage.with(arena, { own: SMALL }, async (stage) => {
    await stage.ready();
    await stage.sends(text("hi", 5));
    await stage.wire.end();
    await stage.reads("[stream.lost] read", [HI], "peer.failed", "peer.lost");
    const lost = { code: "peer.failed", reason: "peer.lost" };
    const what = "[stream.lost] a write to whoever has ended";
    await stage.writes(what, message({ count: 3 }), lost);
  });
}
