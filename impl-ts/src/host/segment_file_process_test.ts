// Two processes: messages both ways, and what becomes of one when the other is killed.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ClosedError, generationOf, PeerFailedError, type Port } from "../mod.ts";
import { writeMany } from "../more/many.ts";
import { waitForPeer } from "../more/peer.ts";
import { revive } from "../more/revive.ts";
import { GEOMETRY, Peer, Place, type Task, test, WAIT } from "./host_fixture.ts";
import type { FutexMechanism } from "./futex.ts";
import { layout } from "../memory/layout.ts";
import { recordOffset } from "../memory/plan.ts";
import { SegmentFile } from "./mod.ts";
import { statsOf } from "../pipe/ends.ts";

const A = { endpoint: 0 };
const B = { endpoint: 1 };

/** Messages of many sizes, in one frame and in several. */
function* messages(count: number): Generator<unknown> {
  for (let index = 0; index < count; index++) {
    yield index % 7 === 0 ? new Uint8Array(index * 31 % 3000).fill(index) : { index, text: "é" };
  }
}

function assertLost(error: unknown): void {
  assert(error instanceof PeerFailedError, `${error}`);
  assertEquals([error.code, error.reason], ["peer.failed", "peer.lost"]);
}

for (const mode of ["echo", "echoAsync"] as const) {
  for (const spin of [50, 0]) {
    test(`blocking calls meet ${mode} in another process, spin ${spin}`, async () => {
      using place = new Place();
      using file = SegmentFile.create(place.path, GEOMETRY, { ...A, spin });
      await using peer = await Peer.start({ path: place.path, creates: false, mode, spin });
      using port = file.port();
      for (const message of messages(mode === "echo" ? 500 : 200)) {
        port.write(message, WAIT);
        assertEquals(port.read(WAIT), message);
      }
      if (spin === 0) assert(statsOf(port).parks > 0, "nobody slept");
      port.end();
      assertEquals([port.read(WAIT), port.ended], [undefined, true]);
      assertEquals(await peer.ended(), 0);
    });
  }
}

test("asynchronous calls, events and posts meet a process that creates the file", async () => {
  using place = new Place();
  await using peer = await Peer.start({ path: place.path, creates: true, mode: "echo" });
  using file = SegmentFile.open(place.path, B);
  using port = file.port();
  for (const message of messages(200)) {
    await port.writeAsync(message, WAIT);
    assertEquals(await port.readAsync(WAIT), message);
  }
  const events: unknown[] = [];
  port.onmessage = ({ data }) => events.push(data);
  for (const message of messages(100)) port.postMessage(message);
  await port.endAsync(WAIT);
  assertEquals(await port.closed, undefined);
  assertEquals(events, [...messages(100)]);
  assertEquals(await peer.ended(), 0);
});

for (const mode of ["echo", "echoAsync"] as const) {
  test(`a notify reaches the sleep of ${mode} in another process`, async () => {
    using place = new Place();
    using file = SegmentFile.create(place.path, GEOMETRY, A);
    await using _peer = await Peer.start({ path: place.path, creates: false, mode, spin: 0 });
    const words = file.segment.words(recordOffset(1), layout.ENDPOINT_RECORD_SIZE);
    const mechanism = file.mechanism as FutexMechanism;
    // Only wakes count here: with its slices, the sleeper would get the messages without being
    // woken.
    let woken = 0;
    for (const end = performance.now() + WAIT.timeout; woken === 0 && performance.now() < end;) {
      woken = mechanism.notify(words, layout.ENDPOINT_BELL_WORD);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assertEquals(woken, 1);
  });
}

/** The ways in which an end learns that its peer is gone: each kind of wait. */
const finders: Record<string, (port: Port, file: SegmentFile) => unknown> = {
  read: (port) => assertThrows(() => port.read(WAIT)),
  readAsync: (port) => assertRejects(() => port.readAsync(WAIT)),
  "write to a full ring": (port) =>
    assertThrows(() => {
      while (port.tryWrite("more"));
      port.write("too much", WAIT);
    }),
  "closed, which does not keep the process alive": async (port) => {
    const timer = setTimeout(() => {}, WAIT.timeout);
    const error = await port.closed;
    clearTimeout(timer);
    return error;
  },
  "waitForPeer and checkPeers": async (port, file) => {
    assertEquals(waitForPeer(port, WAIT), true);
    for (const end = performance.now() + WAIT.timeout; performance.now() < end;) {
      file.checkPeers();
      try {
        port.tryRead();
      } catch (error) {
        return error;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return undefined;
  },
};

for (const [name, find] of Object.entries(finders)) {
  test(`a peer that is killed is found by ${name}`, async () => {
    using place = new Place();
    using file = SegmentFile.create(place.path, GEOMETRY, { ...A, spin: 0 });
    await using peer = await Peer.start({ path: place.path, creates: false, mode: "idle" });
    using port = file.port();
    peer.kill();
    assertLost(await find(port, file));
    assertThrows(() => port.write("again", WAIT), PeerFailedError);
  });
}

for (const spin of [50, 0]) {
  test(`a peer that dies while this end is blocked is found, spin ${spin}`, async () => {
    using place = new Place();
    using file = SegmentFile.create(place.path, GEOMETRY, { ...A, spin });
    const task: Task = { path: place.path, creates: false, mode: "echo", spin };
    await using _peer = await Peer.start(task);
    using port = file.port();
    port.write("hello");
    assertEquals(port.read(WAIT), "hello");
    port.write("die");
    assertLost(assertThrows(() => port.read(WAIT)));
    // An endpoint that opens the file later finds the state in the same call.
    assertThrows(() => SegmentFile.open(place.path, B), Error, "it is taken");
  });
}

test("[segment.vacate_dead] a process that was killed comes back into the same file", async () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  let port = file.port();
  const task: Task = { path: place.path, creates: false, mode: "echo" };
  for (const round of ["one", "two", "three"]) {
    await using peer = await Peer.start(task);
    writeMany(port, [round, "die"]);
    assertEquals(port.read(WAIT), round);
    assertLost(assertThrows(() => port.read(WAIT)));
    await peer.ended();
    port = revive(port);
    assertEquals(generationOf(file.segment, 1), ["one", "two", "three"].indexOf(round) + 1);
  }
});

test("[segment.vacate_dead] who has closed its port and not its file may still come", () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  const old = file.port();
  const other = SegmentFile.open(place.path, B);
  other.port().close();
  assertThrows(() => revive(old), TypeError, "Cannot revive: the owner of its peer lives");
  other.close();
  const port = revive(old);
  using next = SegmentFile.open(place.path, B);
  const there = next.port<string>();
  there.write("again");
  assertEquals(port.read(WAIT), "again");
  // The file closes the end that is there now.
  port.postMessage("last");
  file.close();
  assertEquals(there.read(WAIT), "last");
  assertThrows(() => port.read(WAIT), ClosedError, "this end is closed");
});

test("a file whose creator was killed with what it wrote is read to its end", async () => {
  using place = new Place();
  await using peer = await Peer.start({ path: place.path, creates: true, mode: "echo" });
  using file = SegmentFile.open(place.path, B);
  using port = file.port();
  writeMany(port, ["one", "two", "die"]);
  assertEquals([port.read(WAIT), port.read(WAIT)], ["one", "two"]);
  assertLost(assertThrows(() => port.read(WAIT)));
  await peer.ended();
});

test("the file of two processes that were killed is replaced", async () => {
  using place = new Place();
  {
    await using _first = await Peer.start({ path: place.path, creates: true, mode: "idle" });
    await using _second = await Peer.start({ path: place.path, creates: false, mode: "idle" });
    assertThrows(() => SegmentFile.create(place.path, GEOMETRY, A), Error, "segment.endpoint");
  }
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  await using _peer = await Peer.start({ path: place.path, creates: false, mode: "echo" });
  using port = file.port();
  port.write("new");
  assertEquals(port.read(WAIT), "new");
});

test("a process whose port is unref'd ends, though the port waits", async () => {
  using place = new Place();
  using file = SegmentFile.create(place.path, GEOMETRY, A);
  await using peer = await Peer.start({ path: place.path, creates: false, mode: "unref" });
  assertEquals(await peer.ended(), 0);
  using port = file.port();
  assertLost(assertThrows(() => port.read(WAIT)));
});

test("more endpoints sleep asynchronously than threads do it: the rest poll", async () => {
  const ends = Array.from({ length: 10 }, () => {
    const place = new Place();
    const files = [SegmentFile.create(place.path, GEOMETRY, A), SegmentFile.open(place.path, B)];
    const [here, there] = files.map((file) => file.port<number>()) as [Port<number>, Port<number>];
    return { here, there, used: [...files, place] };
  });
  const reads = ends.map(({ here }) => here.readAsync(WAIT));
  await new Promise((resolve) => setTimeout(resolve, 5)); // by now they sleep, or poll
  ends.forEach(({ there }, index) => there.write(index));
  assertEquals(await Promise.all(reads), ends.map((_, index) => index));
  for (const { used } of ends) used.forEach((each) => each[Symbol.dispose]());
});
