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
    "try_small",
    "A message that an empty ring can take at once, whatever its position.",
    "pipe.try_never frame.batch_whole",
    writing(plan, { operations: [{ write: { ...bytesOf(100), tag: 5 } }, { take: true }] }),
    { results: ["ok", drained([message({ ...bytesOf(100), tag: 5 })])] },
  );
  cases.invalid(
    "try_never",
    "One that it could never take at once: the caller's mistake, and nothing is written.",
    "pipe.try_never",
    from,
    member("operations.0.write.count", 240),
    { results: ["refused", drained([])], bytes: [controlIs(plan, "tail", 0)] },
  );
  cases.invalid(
    "batch_never",
    "A batch that is too large for one frame: the caller's mistake, and nothing is written.",
    "frame.batch_whole",
    from,
    member("operations.0.write", { codec: 3, text: `["${"x".repeat(120)}"]` }),
    { results: ["refused", drained([])], bytes: [controlIs(plan, "tail", 0)] },
  );
}

/** Up to which size a writer should be able to place what it is given, and from which it cannot. */
function addBounds(cases: Cases): void {
  for (const capacity of [256, 1024]) {
    const [should, never] = [Math.max(capacity / 2 - 16, capacity - 128), capacity - 80 + 1];
    for (const start of [0, 16, 48, capacity / 2, 2 ** 32 - 16]) {
      const plan = writersPipe({ capacity, start });
      const size = bytesOf(should);
      const from = cases.valid(
        `try_size_${capacity}_${start.toString(16)}`,
        `${should} bytes, into an empty ring of ${capacity} at position ${start}.`,
        "pipe.try_size pipe.try_never pipe.try_write",
        writing(plan, { operations: [{ write: size }, { take: true }] }),
        { results: ["ok", drained([message(size)])] },
      );
      cases.invalid(
        `try_beyond_${capacity}_${start.toString(16)}`,
        `${never} bytes, for which there is not always room, however a writer cuts.`,
        "pipe.try_never",
        from,
        member("operations.0.write.count", never),
        {
          results: ["refused", drained([])],
          bytes: [controlIs(plan, "tail", start)],
        },
      );
    }
  }
}

/** A message of several frames, of which some have room. */
function addPartly(cases: Cases): void {
  const plan = writersPipe();
  const [first, second] = [bytesOf(64), bytesOf(120)];
  const from = cases.valid(
    "try_partly",
    "There is room for half of the ring, and not for all of a message: nothing of it is placed.",
    "pipe.try_write",
    writing(plan, { operations: [{ write: first }, { write: second }, { take: true }] }),
    {
      results: ["ok", "full", drained([message(first)])],
      bytes: [controlIs(plan, "tail", 80)],
    },
  );
  cases.invalid(
    "try_wholly",
    "The message before it is a short one.",
    "pipe.try_write",
    from,
    member("operations.0.write.count", 0),
    { results: ["ok", "ok", drained([message(bytesOf(0)), message(second)])] },
  );
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
    cases.valid(
      `try_never_full_${size}`,
      `${size} bytes, into an empty ring of 256 at many positions: they go in, or are refused.`,
      "pipe.try_never",
      writing(writersPipe(), { operations }),
      { results },
    );
  }
}
