// The testees by a few commands each, whatever they run in. Every reply is checked against the
// protocol's schema on its way.

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { Connection } from "../../kit/connection.ts";
import type { Command, Opening, Ran, Reply, Task } from "../../kit/protocol.ts";
import {
  build,
  type Meeting,
  shareAgain,
  shareMemory,
  type Shell,
  shells,
  startWorker,
} from "./shells_fixture.ts";

const TIMEOUT_MS = 10_000;
const CAPACITY = 1024;
const rings = (capacity: number) => ({
  endpoints: 2,
  channels: [{ writer: 0, reader: 1, capacity }, { writer: 1, reader: 0, capacity }],
});
/** The bytes of a segment of two such rings: the tables, and control areas of 512 bytes. */
const sizeOf = (capacity: number) => 512 + 2 * (512 + capacity);
const OK = { outcome: "ok" };
const MAGIC = "4d494c4c52414345";

Deno.test.beforeAll(async () => {
  await build([...new Set(shells.filter(({ there }) => there).flatMap(({ steps }) => steps))]);
});

/** Skipped where the machine lacks what the shell needs, which the gate counts as failed. */
function test(shell: Shell, fact: string, fn: () => Promise<void>): void {
  const name = `the testee as ${shell.name}: ${fact}`;
  // A guest's thread of the pool may outlive the test by a moment.
  Deno.test({ name, ignore: !shell.there, sanitizeResources: false, fn });
}

async function alone(shell: Shell, play: (testee: Connection) => Promise<void>): Promise<void> {
  const testee = await shell.start();
  try {
    await play(testee);
  } finally {
    await testee.link.kill();
  }
}

/** Opens memory of the testee's own as handle 1. */
function open(testee: Connection, opening: Opening, size: number, hex = ""): Promise<object> {
  const memory = { size, bytes: hex === "" ? [] : [{ offset: 0, hex }] };
  return said(testee, { command: "open", handle: 1, carrier: "bytes", memory, ...opening });
}

function creates(role: Opening["role"], capacity = CAPACITY): Opening {
  return { kind: "create", geometry: rings(capacity), role, endpoint: 0 };
}

/** A reply without its id, which the connection has checked. */
async function said(testee: Connection, command: Command): Promise<object> {
  const { id: _, ...reply } = await testee.send(command) as Reply & { id: number };
  return reply;
}

async function result(testee: Connection, command: Command): Promise<unknown> {
  const reply = await testee.send(command);
  assert("result" in reply, JSON.stringify(reply));
  return reply.result;
}

const message = (hex: string, kind = 1) => ({ kind, codec: 0, tag: 7, hex });

for (const shell of shells) {
  test(
    shell,
    "says who it is, and declines what it has not heard of",
    () =>
      alone(shell, async (testee) => {
        const { protocol, nouns, carriers, waits } = testee.hello;
        assertEquals(protocol, 1);
        assert(nouns.includes("call"));
        // Of streams, only a process can open any, be it Zig's or that of the interface for C.
        const isProcess = shell.name === "a process" || shell.name === "its interface for C";
        assertEquals(nouns.includes("stream"), isProcess);
        assert(nouns.includes("property"));
        assert(nouns.includes("fanout"));
        const more = ["call", "property", "fanout", "stream"].filter((noun) =>
          nouns.includes(noun)
        );
        assertEquals(nouns.length, 8 + more.length);
        assertEquals(waits, ["block", "poll"]);
        assert(carriers.includes("bytes"));
        assertEquals(await testee.tryUnknown(), undefined);
        assertEquals(await testee.tryMember(), undefined);
      }),
  );

  test(shell, "writes, and the kit sees it", () =>
    alone(shell, async (testee) => {
      const size = sizeOf(CAPACITY);
      assertEquals(await open(testee, creates("port"), size), { result: OK });
      const dump = (from: number, length: number) =>
        result(testee, { command: "dump", handle: 1, from, size: length });
      assertEquals(await dump(0, 8), { hex: MAGIC });
      assertEquals(
        await result(testee, { command: "write", handle: 1, message: message("6162") }),
        OK,
      );
      // The frame, after the tables and the first ring's control area.
      assertEquals(await dump(1024, 18), { hex: "02000000010300000700000000000000" + "6162" });
      const never = message("00".repeat(2 * CAPACITY));
      assertEquals(await result(testee, { command: "write", handle: 1, message: never }), {
        outcome: "refused",
      });
      const half = message("00".repeat(CAPACITY / 2 - 16));
      const fill = () => result(testee, { command: "write", handle: 1, message: half });
      assertEquals([await fill(), await fill()], [OK, { outcome: "full" }]);
      assertEquals(
        await said(testee, { command: "write", handle: 1, message: half, timeout_ms: 2 }),
        { error: { code: "wait.timeout" } },
      );
      assertEquals(await result(testee, { command: "drop", handle: 1 }), OK);
    }));

  test(
    shell,
    "reads what the kit has stored, and says why there is nothing",
    () =>
      alone(shell, async (testee) => {
        assertEquals(await open(testee, creates("port"), sizeOf(CAPACITY)), { result: OK });
        const read = () => said(testee, { command: "read", handle: 1, timeout_ms: 2 });
        assertEquals(await read(), { result: { end: "nothing" } });
        // A frame in the second ring, and its `tail`.
        const ring = 512 + 512 + CAPACITY;
        const bytes = [
          { offset: ring + 512, hex: "03000000010300000900000000000000" + "616263" },
          { offset: ring, hex: "20000000" },
        ];
        assertEquals(await result(testee, { command: "patch", handle: 1, bytes }), OK);
        const peeked = await said(testee, { command: "peek", handle: 1 });
        const item = { kind: 1, codec: 0, tag: 9, hex: "616263" };
        assertEquals(peeked, { result: { item } });
        assertEquals(await result(testee, { command: "release", handle: 1 }), OK);
        // The peer, endpoint 0 of the two, is marked failed for a reason that nobody knows.
        const failed = [{ offset: 128 + 128 + 4, hex: "03ff0000" }];
        assertEquals(await result(testee, { command: "patch", handle: 1, bytes: failed }), OK);
        const error = { code: "peer.failed", reason: 255 };
        assertEquals(await read(), { error });
        assertEquals(await result(testee, { command: "close", handle: 1 }), OK);
        assertEquals(await read(), { error: { code: "pipe.closed" } });
      }),
  );

  test(shell, "shows the memory that it has refused", () =>
    alone(shell, async (testee) => {
      const attach: Opening = { kind: "attach", role: "reader", channel: 0 };
      const garbage = "00".repeat(8) + "02000000";
      assertEquals(await open(testee, attach, 512, garbage), {
        error: { code: "segment.magic" },
      });
      assertEquals(await result(testee, { command: "dump", handle: 1, from: 8, size: 4 }), {
        hex: "02000000",
      });
    }));

  test(shell, "makes the messages of the protocol's table", () =>
    alone(shell, async (testee) => {
      assertEquals(await open(testee, creates("writer"), sizeOf(CAPACITY)), { result: OK });
      const task: Task = {
        role: "write",
        seed: 1,
        capacity: 256,
        count: 6,
        wait: "poll",
        then: "stay",
        record: true,
      };
      assertEquals(await result(testee, { command: "run", handle: 1, task, timeout_ms: 100 }), {
        count: 6,
        size: 2 + 17 + 73 + 113 + 11 + 9,
        crc32: 10692941,
        end: "done",
        parks: 0,
        wakes: 0,
        late_wakes: 0,
        record: [
          [0, 2, 2236831345],
          [1, 17, 1008317658],
          [2, 73, 4044189015],
          [3, 113, 1041754357],
          [4, 11, 4240599467],
          [5, 9, 721557101],
        ],
      });
      const reading = await testee.send({ command: "read", handle: 1, timeout_ms: 0 });
      assert("decline" in reading, "a writer cannot read");
      const event = { ...task, wait: "event" } as const;
      const waiting = { command: "run", handle: 1, task: event, timeout_ms: 100 } as const;
      assert("decline" in await testee.send(waiting));
    }));

  test(shell, "dies of what it cannot answer", () =>
    alone(shell, async (testee) => {
      const send = () => testee.send({ command: "publish", handle: 99 });
      const { message } = await assertRejects(send, Error);
      assertMatch(message, /UnknownHandle|KeyError: 99/);
    }));

  if (shell.meet === undefined) continue;
  for (const wait of ["block", "poll"] as const) {
    test(shell, `meets itself, there and back, by calls that ${wait}`, async () => {
      await using meeting = await shell.meet!(2);
      const [drove, echoed] = await echo(meeting, wait, 300);
      assertEquals([drove.end, echoed.end], ["ended", "ended"]);
      assertEquals([drove.count, echoed.count], [300, 300]);
      // What has come back is what went out, whoever counts it.
      assertEquals([drove.size, drove.crc32], [echoed.size, echoed.crc32]);
      // One that never catches up finds something whenever it looks.
      if (wait === "block") assert(drove.parks! + echoed.parks! > 0, "nobody slept");
      // And it is not what another seed stands for.
      const other = (await echo(meeting, wait, 300, 6))[0];
      assert(other.crc32 !== drove.crc32);
    });
  }

  test(shell, "is told when its peer closes in the middle", async () => {
    await using meeting = await shell.meet!(2);
    await openBoth(meeting, 1);
    const [wrote, read] = await Promise.all([
      perform(meeting, 0, 1, { role: "write", count: 10_000, wait: "block", then: "end" }),
      perform(meeting, 1, 1, { role: "read", count: 20, wait: "block", then: "close" }),
    ]);
    assertEquals([wrote.end, read.end, read.count], ["peer.closed", "done", 20]);
    assert(wrote.count >= 20 && wrote.count < 10_000);
  });
}

/** Opens both ends of a port under a handle. */
async function openBoth({ testees, place, bytes }: Meeting, handle: number): Promise<void> {
  if (place.carrier === "shared") bytes().fill(0);
  for (const [index, testee] of testees.entries()) {
    const opening = index === 0 ? creates("port") : { kind: "attach", role: "port" } as const;
    const open = { command: "open", handle, ...place, ...opening, endpoint: index } as const;
    assertEquals(await result(testee, { ...open, spin_us: 0 }), OK);
  }
}

function perform(
  { testees }: Meeting,
  index: number,
  handle: number,
  task: Pick<Task, "role" | "count" | "wait" | "then">,
  seed = 5,
): Promise<Ran> {
  const whole = { ...task, seed, capacity: CAPACITY };
  const run = { command: "run", handle, task: whole, timeout_ms: TIMEOUT_MS } as const;
  return result(testees[index]!, run) as Promise<Ran>;
}

async function echo(meeting: Meeting, wait: "block" | "poll", count: number, seed = 5) {
  await openBoth(meeting, seed);
  const rans = await Promise.all([
    perform(meeting, 0, seed, { role: "drive", count, wait, then: "end" }, seed),
    perform(meeting, 1, seed, { role: "echo", wait, then: "end" }, seed),
  ]);
  for (const testee of meeting.testees) {
    assertEquals(await result(testee, { command: "drop", handle: seed }), OK);
  }
  return rans as [Ran, Ran];
}

const [worker] = shells.filter(({ name }) => name === "a worker");

test(worker!, "goes from one memory to the next, and back to one that it has", async () => {
  const link = startWorker();
  const testee = await Connection.start(link);
  const opening = (handle: number, name: string) =>
    ({ command: "open", handle, carrier: "shared", name, ...creates("writer") }) as const;
  const first = await shareMemory([link], "first");
  assertEquals(await result(testee, opening(1, "first")), OK);
  await shareAgain(link, first, "again", 0);
  const taken = await testee.send({ ...opening(2, "again"), kind: "attach" });
  assertEquals("error" in taken && taken.error.code, "segment.endpoint");
  await shareMemory([link], "second");
  assertEquals(await result(testee, opening(3, "second")), OK);
  for (const handle of [1, 3]) {
    const write = { command: "write", handle, message: message("61") } as const;
    assertEquals(await result(testee, write), OK);
  }
  const unheard = await testee.send(opening(4, "unheard of"));
  assertStringIncludes("decline" in unheard ? unheard.decline : "", "no memory");
  await link.kill();
});
