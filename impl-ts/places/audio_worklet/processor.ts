import { agentMechanism, type Memory, MillraceError, Port } from "millrace";
import { release, tryPeek } from "millrace/lend";
import { waitForPeer } from "millrace/peer";
import { readInto, tryReadInto } from "millrace/raw";
import { BLOCK } from "../audio.ts";
import { assertEquals } from "../stage.ts";

/** What the page hands to the processor. */
interface Given {
  source: unknown;
  sink: Memory;
}

export default function processor({ source, sink }: Given): (samples: Float32Array) => unknown {
  const from = Port.from<Uint8Array>(source);
  const to = Port.create<Uint8Array>({ memory: sink, codec: "bytes" });
  refuse();
  const { told, goOn } = post();
  const block = new Uint8Array(BLOCK);
  let count = 0;
  return (samples) => {
    if (count === 2) goOn();
    if (count % 2 === 0) {
      if (tryReadInto(from, block) === undefined) {
        assertEquals(from.ended, true);
        assertEquals(told, ["port.overflow", "sent"]);
        to.end();
        for (const port of [from, to]) port.close();
        return count;
      }
    } else {
      const { area, offset, size } = tryPeek(from)!;
      for (let i = 0; i < size; i++) block[i] = area[offset + i]!;
      release(from);
    }
    for (let i = 0; i < BLOCK; i++) samples[i] = block[i]! / 256;
    assertEquals(to.tryWrite(block), true);
    count++;
    return undefined;
  };
}

/** Where there is no room, and where there is nothing, the verbs say so. */
function refuse(): void {
  const here = Port.create<Uint8Array>({ capacity: 256, codec: "bytes" });
  const there = Port.attach<Uint8Array>(here.memory);
  const bytes = new Uint8Array(48);
  let [written, read] = [0, 0];
  while (here.tryWrite(bytes)) written++;
  while (tryReadInto(there, bytes) !== undefined) read++;
  assertEquals([written > 0, read, tryPeek(there)], [true, written, undefined]);
  while (here.tryWrite(bytes));
  // [wait.no_block] In Firefox this thread may block. Where it may not, no call lasts so long.
  const { blocks } = agentMechanism();
  const wait = { timeout: blocks ? 5 : 60_000 };
  const answers = [
    () => here.write(bytes, wait),
    () => here.read(wait),
    () => readInto(here, bytes, wait),
    () => waitForPeer(Port.create(), wait),
  ].map(answerOf);
  const expected = blocks
    ? ["wait.timeout", undefined, undefined, false]
    : answers.map(() => "wait.forbidden");
  assertEquals(answers, expected);
  for (const port of [here, there]) port.close();
}

/** What a call returns, or the code of the error that it throws. */
function answerOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    if (error instanceof MillraceError) return error.code;
    throw error;
  }
}

/**
 * Posts where there is no room: the second post is refused, and the first goes out with a call that
 * finds room for it, also where nothing wakes an event loop. Returns what is told of that.
 */
function post(): { told: unknown[]; goOn: () => void } {
  const told: unknown[] = [];
  const options = { capacity: 256, codec: "bytes", queueLimit: 1, overflow: "reject" } as const;
  const here = Port.create<Uint8Array>(options);
  const there = Port.attach<Uint8Array>(here.memory);
  const bytes = new Uint8Array(48);
  while (here.tryWrite(bytes));
  here.postMessage(bytes).then(() => told.push("sent"));
  here.postMessage(bytes).catch(({ code }) => told.push(code));
  return {
    told,
    goOn() {
      while (tryReadInto(there, bytes) !== undefined);
      assertEquals(here.tryWrite(bytes), true);
    },
  };
}
