/** How large a message can be placed at once: cases of `spec/pipe.md`. @module */

import { bytesOf, Cases, controlIs, drained, member, message, writersPipe } from "./builder.ts";
import { writing } from "./builder.ts";
import type { Operation } from "./case.ts";

/** Adds them to the cases of the pipe. */
export function addTries(cases: Cases): void {
  addNever(cases);
  addBounds(cases);
  addNeverFull(cases);
  addPartly(cases);
}

function addNever(cases: Cases): void {
  const plan = writersPipe();
  const from = cases.valid(
    writing(plan, { operations: [{ write: { ...bytesOf(100), tag: 5 } }, { take: true }] }),
    {
      name: "try_small",
      about: "A message that an empty ring can take at once, whatever its position.",
      clauses: "pipe.try_never frame.batch_whole",
      results: ["ok", drained([message({ ...bytesOf(100), tag: 5 })])],
    },
  );
  cases.invalid(from, member("operations.0.write.count", 240), {
    name: "try_never",
    about: "One that it could never take at once: the caller's mistake, and nothing is written.",
    clauses: "pipe.try_never",
    results: ["refused", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
  cases.invalid(from, member("operations.0.write", { codec: 3, text: `["${"x".repeat(120)}"]` }), {
    name: "batch_never",
    about: "A batch that is too large for one frame: the caller's mistake, and nothing is written.",
    clauses: "frame.batch_whole",
    results: ["refused", drained([])],
    bytes: [controlIs(plan, "tail", 0)],
  });
}

/** Up to which size a writer should be able to place what it is given, and from which it cannot. */
function addBounds(cases: Cases): void {
  for (const capacity of [256, 1024]) {
    const [should, never] = [Math.max(capacity / 2 - 16, capacity - 128), capacity - 80 + 1];
    for (const start of [0, 16, 48, capacity / 2, 2 ** 32 - 16]) {
      const plan = writersPipe({ capacity, start });
      const size = bytesOf(should);
      const from = cases.valid(writing(plan, { operations: [{ write: size }, { take: true }] }), {
        name: `try_size_${capacity}_${start.toString(16)}`,
        about: `${should} bytes, into an empty ring of ${capacity} at position ${start}.`,
        clauses: "pipe.try_size pipe.try_never pipe.try_write",
        results: ["ok", drained([message(size)])],
      });
      cases.invalid(from, member("operations.0.write.count", never), {
        name: `try_beyond_${capacity}_${start.toString(16)}`,
        about: `${never} bytes, for which there is not always room, however a writer cuts.`,
        clauses: "pipe.try_never",
        results: ["refused", drained([])],
        bytes: [controlIs(plan, "tail", start)],
      });
    }
  }
}

/** A message of several frames, of which some have room. */
function addPartly(cases: Cases): void {
  const plan = writersPipe();
  const [first, second] = [bytesOf(64), bytesOf(120)];
  const from = cases.valid(
    writing(plan, { operations: [{ write: first }, { write: second }, { take: true }] }),
    {
      name: "try_partly",
      about:
        "There is room for half of the ring, and not for all of a message: nothing of it is placed.",
      clauses: "pipe.try_write",
      results: ["ok", "full", drained([message(first)])],
      bytes: [controlIs(plan, "tail", 80)],
    },
  );
  cases.invalid(from, member("operations.0.write.count", 0), {
    name: "try_wholly",
    about: "The message before it is a short one.",
    clauses: "pipe.try_write",
    results: ["ok", "ok", drained([message(bytesOf(0)), message(second)])],
  });
}

/** Between the two bounds it is the writer's to say; that there is no room it cannot say. */
function addNeverFull(cases: Cases): void {
  for (const size of [129, 160, 176]) {
    const operations: Operation[] = [];
    const results = [];
    const placed = { one_of: [drained([message(bytesOf(size))]), drained([])] };
    for (let round = 0; round < 6; round++) {
      operations.push({ write: bytesOf(size) }, { take: true }, { write: bytesOf(0) });
      operations.push({ take: true });
      results.push({ one_of: ["ok", "refused"] }, placed, "ok", drained([message(bytesOf(0))]));
    }
    cases.valid(writing(writersPipe(), { operations }), {
      name: `try_never_full_${size}`,
      about:
        `${size} bytes, into an empty ring of 256 at many positions: they go in, or are refused.`,
      clauses: "pipe.try_never",
      results,
    });
  }
}
