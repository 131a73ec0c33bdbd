// The kit as another process at a file: its locks, and the thread that sees what holds for
// microseconds only. Here the test is the testee, and it is no good.

import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { ATTACHED, CLOSED, VACANT } from "./reference/builder.ts";
import { recordAt } from "./reference/encode.ts";
import { sizeOf } from "./reference/layout.ts";
import type { Arena } from "./kit/arena.ts";
import type { Connection } from "./kit/connection.ts";
import type { Seen, WatchOrder } from "./kit/race/file_watcher.ts";
import { FilePlace, image, type PeerFile } from "./kit/scripts/files.ts";
import * as system from "./kit/race/system.ts";
import { inFolder } from "./kit_fixture.ts";

const RECORD_SIZE = sizeOf("endpoint_record");
const HEADER_SIZE = sizeOf("segment_header");

function test(name: string, play: (place: FilePlace) => Promise<void> | void): void {
  const ignore = !system.hasCalls;
  Deno.test({
    name,
    ignore,
    // The thread that looks ends a little later than its test.
    sanitizeOps: false,
    sanitizeResources: false,
    fn: () =>
      inFolder(async (folder) => {
        const place = new FilePlace(
          { folder } as Arena,
          { link: { pid: Deno.pid } } as unknown as Connection,
        );
        try {
          await play(place);
        } finally {
          place.clear();
        }
      }),
  });
}

test("lock: of two open file descriptions one has it, and the other sees it", (place) => {
  const [one, two] = [place.put(image()), place.look()];
  assert(one.lockHeader() && !one.isHeaderLocked(), "its own lock is none for itself");
  assert(two.isHeaderLocked() && !two.lockHeader());
  one.unlockHeader();
  assert(two.lockHeader() && one.isHeaderLocked());
  one.lockRecord(1);
  assert(two.isRecordLocked(1) && !two.isRecordLocked(0));
  assertThrows(() => two.lockRecord(1), Error, "[segment.file_lock]");
  one.release(); // and with the last of a description, its locks
  assert(!two.isRecordLocked(1));
});

test("hasName is of the file, not of the path", (place) => {
  const file = place.put(image());
  assert(file.hasName());
  Deno.renameSync(file.path, place.path("other"));
  assert(!file.hasName() && file.hasName(place.path("other")));
  place.put(image());
  assert(!file.hasName());
  file.setState(1, CLOSED);
  file.stateIs("[x.y]", 1, CLOSED);
  const error = assertThrows(() => file.stateIs("[x.y]", 1, VACANT), Error);
  assertMatch(error.message, /^\[x\.y\] state of 1: expected 0, got 2$/);
});

/** Does something until the thread has seen it sharply. */
async function seen(
  place: FilePlace,
  look: WatchOrder["look"],
  play: (file: PeerFile, path: string) => void,
  prepare: (file: PeerFile) => void = () => {},
): Promise<Seen> {
  let last: Seen | undefined;
  const once = async () => {
    const name = crypto.randomUUID();
    const path = place.path(name);
    const file = place.put(image([VACANT, ATTACHED]), `${name}.file`);
    prepare(file);
    const order = { look, path: look === "named" ? path : file.path, endpoint: 0 };
    return last = await place.watching(order, () => Promise.resolve(play(file, path)));
  };
  // Beside whatever else this machine does.
  for (let tries = 0; tries < 10; tries++) if (await place.often(1, once)) return last!;
  throw new Error("it was never seen");
}

test("a thread sees a name that was given before the content", async (place) => {
  const { start, isLocked } = await seen(place, "named", (file, path) => {
    const bytes = file.bytes();
    using named = Deno.openSync(path, { write: true, create: true });
    pause();
    named.writeSync(bytes);
  });
  assertEquals([start!.length, isLocked], [0, false]);
});

test("a thread sees a record that is locked too late", async (place) => {
  const late = await seen(
    place,
    "attached",
    (file) => act(() => file.setState(0, ATTACHED), () => file.lockRecord(0)),
  );
  assertEquals([late.isAttached, late.isLocked], [true, false]);
  const good = await seen(
    place,
    "attached",
    (file) => act(() => file.lockRecord(0), () => file.setState(0, ATTACHED)),
  );
  assertEquals([good.isAttached, good.isLocked], [true, true]);
});

test("a thread sees a record that is given back too early", async (place) => {
  const prepare = (file: PeerFile) => (file.lockRecord(0), file.setState(0, ATTACHED));
  const early = await seen(
    place,
    "unlocked",
    (file) => act(() => file.unlockRecord(0), () => file.setState(0, CLOSED)),
    prepare,
  );
  assertEquals(early.isAttached, true);
  const good = await seen(
    place,
    "unlocked",
    (file) => act(() => file.setState(0, CLOSED), () => file.unlockRecord(0)),
    prepare,
  );
  assertEquals(good.isAttached, false);
});

test("a thread sees the moment at which neither header nor record is locked", async (place) => {
  let opened: PeerFile | undefined;
  const gap = await seen(place, "header", (file) => {
    opened = file;
    file.lockHeader();
    pause();
    file.unlockHeader();
    pause();
  });
  assertEquals(gap.isLocked, false);
  // Without that moment there is nothing to see.
  const none = await seen(place, "header", (file) => {
    file.lockHeader();
    pause();
    file.lockRecord(0);
    file.unlockHeader();
    pause();
  });
  assertEquals(none.isLocked, true);
  const fd = system.open(opened!.path);
  assert(!system.isLocked(fd, 0, HEADER_SIZE + RECORD_SIZE), "the thread has kept a lock");
  assertEquals(recordAt(0), HEADER_SIZE);
  system.close(fd);
});

/** Does one thing after the other, with time to be seen in between. */
function act(...steps: (() => void)[]): void {
  for (const step of steps) {
    step();
    pause();
  }
}

/** Some tenths of a millisecond, in which the other thread looks a hundred times. */
function pause(): void {
  for (const end = performance.now() + 0.3; performance.now() < end;);
}
