/** A peer that writes anything anywhere: every call returns or throws a documented code. */

import { assert } from "@std/assert";
import { MillraceError } from "../error.ts";
import { pattern, random } from "./fixture.ts";
import { abandon, publish, release, tryClaim, tryPeek } from "../more/lend.ts";
import { writeMany } from "../more/many.ts";
import { Port } from "../port/port.ts";

const ROUNDS = 3_000;
const STEPS = 40;
const NOW = { timeout: 0 };

/** Scribbles over a control word, a record, a frame, or anything after the tables. */
function scribble(words: Int32Array, next: () => number): void {
  const value = [
    next(),
    next() & ~15,
    (next() % 64) * 16,
    next() % 8,
    0xffffffff,
    1 << (next() % 32),
  ][next() % 6]!;
  const controls = [0, 32, 64, 96].flatMap((word) => [128 + word, 320 + word]);
  const at = [
    controls[next() % 8]!, // cursors and wants
    controls[next() % 4]!,
    32 + next() % 3, // the records: bell, state, wakes
    64 + next() % 3,
    256 + 4 * (next() % 16), // frame headers, first and second words
    257 + 4 * (next() % 16),
    448 + next() % 64,
  ][next() % 7]!;
  // A state is hit rarely, or nothing else would be tested.
  if ((at & ~32) === 33 % 32 && next() % 8 > 0) return;
  if (next() % 4 === 0) words[at] = words[at]! ^ (1 << (next() % 32));
  else words[at] = value;
}

function step(port: Port, next: () => number, lending: boolean): void {
  switch (next() % 8) {
    case 0:
      port.tryWrite({ n: next() });
      break;
    case 1:
      port.tryWrite(pattern(next() % 140));
      break;
    case 2:
      port.write(pattern(next() % 400), NOW);
      break;
    case 3:
      writeMany(port, [1, "x", [2]], NOW);
      break;
    case 4: {
      if (tryClaim(port, next() % 113) === undefined) break;
      if (next() % 2 === 0) publish(port, 0);
      else abandon(port);
      break;
    }
    case 5:
      if (next() % 16 === 0) port.end();
      break;
    default:
      if (!lending) port.read(NOW);
      else if (tryPeek(port) !== undefined) release(port);
  }
}

Deno.test("seeded scribbles cause documented codes only, and no call hangs or reads beyond", () => {
  const codes = new Map<string, number>();
  for (let seed = 0; seed < ROUNDS; seed++) {
    const next = random(seed);
    const start = (2 ** 32 - 16 * (next() % 32)) % 2 ** 32;
    const maxMessageSize = [64, 300, 1 << 20][next() % 3]!;
    const options = { capacity: 256, start, maxMessageSize, spin: 0 };
    const a = Port.create(options);
    const b = Port.attach(a.memory, options);
    const words = new Int32Array(a.memory as SharedArrayBuffer);
    for (let i = 0; i < STEPS; i++) {
      if (next() % 4 === 0) scribble(words, next);
      try {
        step(next() % 2 === 0 ? a : b, next, seed % 2 === 0);
      } catch (error) {
        // What is lent in part may not be read into the inbox: our own step's mistake, not theirs.
        if (!(error instanceof MillraceError)) throw new Error(`seed ${seed}`, { cause: error });
        codes.set(error.code, (codes.get(error.code) ?? 0) + 1);
      }
    }
    a.close();
    b.close();
  }
  const expected = [
    "ring.cursor",
    "frame.kind",
    "frame.flags",
    "frame.reserved",
    "frame.size",
    "frame.pad",
    "frame.sequence",
    "frame.total",
    "message.size",
    "peer.failed",
    "peer.closed",
    "pipe.failed",
    "wait.timeout",
    "pipe.ended",
  ];
  const missing = expected.filter((code) => !codes.has(code));
  assert(missing.length <= 2, `never met: ${missing}; met: ${[...codes]}`);
});

Deno.test("asynchronous calls under scribbles end at their deadlines or with a code", async () => {
  for (let seed = 0; seed < 60; seed++) {
    const next = random(seed);
    const a = Port.create({ capacity: 256, spin: 0 });
    const b = Port.attach(a.memory, { spin: 0 });
    const words = new Int32Array(a.memory as SharedArrayBuffer);
    const waits = { timeout: 4 };
    const calls = [
      a.writeAsync(pattern(400), waits),
      a.readAsync(waits),
      b.readAsync(waits),
      b.writeAsync({ n: 1 }, waits),
      b.readAsync(waits),
    ];
    for (let i = 0; i < 3; i++) scribble(words, next);
    for (const result of await Promise.allSettled(calls)) {
      if (result.status === "rejected") assert(result.reason instanceof MillraceError);
    }
    a.close();
    b.close();
  }
});
