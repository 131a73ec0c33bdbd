/** Segments in memory without a name, whose size nobody can change. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import process from "node:process";
import { PeerFailedError, SegmentError, segmentSize } from "../mod.ts";
import { emptyFile, GEOMETRY, Peer, Place, test, WAIT } from "./host_fixture.ts";
import * as files from "./files.ts";
import { SegmentFile, SystemError } from "./mod.ts";
import { makeSealed } from "./segment_file_draft.ts";

const A = { endpoint: 0 };
const B = { endpoint: 1 };
const SIZE = segmentSize(GEOMETRY);

function codeOf(call: () => unknown): string {
  return assertThrows(call, SegmentError).code;
}

/** Runs a program, and returns what it wrote to its error output. */
function complaintOf(program: string, ...args: string[]): string {
  return spawnSync(program, args, { env: { ...process.env, LC_ALL: "C" } }).stderr.toString();
}

test("createSealed and open share one segment, of which nothing is left", () => {
  using here = SegmentFile.createSealed(GEOMETRY, A);
  assert(/^\/proc\/\d+\/fd\/\d+$/.test(here.path), here.path);
  const { mode, size, blocks, nlink } = fs.statSync(here.path);
  assertEquals([mode & 0o7777, size, nlink], [0o600, SIZE, 0]);
  assert(blocks * 512 >= SIZE, "all bytes are reserved"); // [segment.file_space]
  const there = SegmentFile.open(here.path, B);
  const port = there.port<string>();
  here.port<string>().write("there");
  port.write("back");
  assertEquals([port.read(), here.path === there.path], ["there", true]);
  // Each has an open file description of its own, so that their locks conflict.
  assertEquals(codeOf(() => SegmentFile.open(here.path, B)), "segment.endpoint");
  here.close();
  assertThrows(() => SegmentFile.open(here.path, B), SegmentError, "there is no file");
  there.close();
});

test("createSealed refuses what cannot be, and leaves no descriptor open", () => {
  const open = () => fs.readdirSync("/proc/self/fd").length;
  const before = open();
  assertEquals(
    codeOf(() => SegmentFile.createSealed(GEOMETRY, { endpoint: 2 })),
    "segment.endpoint",
  );
  const none = { endpoints: 0, channels: [] };
  assertThrows(() => SegmentFile.createSealed(none, A), RangeError);
  assertThrows(() => SegmentFile.createSealed(GEOMETRY, { ...A, spin: -1 }), RangeError);
  for (let round = 0; round < 3; round++) SegmentFile.createSealed(GEOMETRY, A).close();
  assertEquals(open(), before);
});

for (const creates of [true, false]) {
  test(`[segment.file_handed] two processes meet, the other creates ${creates}`, async () => {
    using own = creates ? undefined : SegmentFile.createSealed(GEOMETRY, A);
    const task = { path: own?.path ?? "", mode: "echo" as const };
    await using peer = await Peer.start({ ...task, creates: creates && "sealed" });
    using file = own ?? SegmentFile.open(peer.path, B);
    using port = file.port();
    for (let index = 0; index < 200; index++) {
      const message = new Uint8Array(index * 31 % 3000).fill(index);
      port.write(message, WAIT);
      assertEquals(port.read(WAIT), message);
    }
    port.write("die");
    const error = assertThrows(() => port.read(WAIT), PeerFailedError);
    assertEquals(error.reason, "peer.lost"); // [segment.file_dead]
    await peer.ended();
    if (!creates) return;
    // The path was that of the process's descriptor, which is closed.
    assertThrows(() => SegmentFile.open(peer.path, B), SegmentError, "there is no file");
  });
}

test("[segment.file_sealed] nobody can change the size, and everybody lives", async () => {
  await using peer = await Peer.start({ path: "", creates: "sealed", mode: "echo", spin: 0 });
  using file = SegmentFile.open(peer.path, B);
  using port = file.port();
  const refused = "Operation not permitted"; // EPERM
  for (const size of ["0", "4096", String(SIZE + 4096)]) {
    assert(complaintOf("truncate", "-s", size, peer.path).includes(refused), size);
  }
  assert(complaintOf("sh", "-c", `: > ${peer.path}`).includes(refused));
  const fd = files.openExisting(peer.path, true);
  assertEquals(emptyFile(fd), false);
  files.close(fd);
  port.write("all of it", WAIT);
  assertEquals(port.read(WAIT), "all of it");
  port.end();
  assertEquals([port.read(WAIT), port.ended, await peer.ended()], [undefined, true, 0]);
});

test("a file with a name that is made shorter ends the processes that use it", async () => {
  using place = new Place();
  await using peer = await Peer.start({ path: place.path, creates: true, mode: "echo", spin: 0 });
  fs.truncateSync(place.path, 0);
  assertEquals(await peer.ended(), 128 + 7); // SIGBUS
});

test("[segment.file_handed] a descriptor of what is not sealed, or not ours, is refused", () => {
  using place = new Place();
  using file = SegmentFile.createSealed(GEOMETRY, A);
  const pathOf = (fd: number) => `/proc/${process.pid}/fd/${fd}`;
  const refusedAs = (fd: number, how: (path: string) => unknown) => {
    const code = codeOf(() => how(pathOf(fd)));
    files.close(fd);
    return code;
  };
  const open = (path: string) => SegmentFile.open(path, B);
  SegmentFile.create(place.path, GEOMETRY, A).close();
  assertEquals(refusedAs(files.openExisting(place.path), open), "segment.file");
  assertEquals(refusedAs(files.openUnnamed(place.folder), open), "segment.file");
  const unsealed = files.openMemory();
  files.makePrivate(unsealed);
  files.reserve(unsealed, SIZE);
  assertEquals(refusedAs(unsealed, open), "segment.file");
  const others = makeSealed(SIZE);
  fs.chmodSync(pathOf(others), 0o640);
  assertEquals(refusedAs(others, open), "segment.file");
  if (process.getuid!() === 0) {
    const another = makeSealed(SIZE);
    fs.chownSync(pathOf(another), 1, 0);
    assertEquals(refusedAs(another, open), "segment.file");
  }
  assertEquals(refusedAs(makeSealed(SIZE), open), "segment.unready");
  // A link to such a path is an ordinary link, and so is any other path to the folder.
  fs.symlinkSync(file.path, `${place.folder}/link`);
  assertEquals(codeOf(() => open(`${place.folder}/link`)), "segment.file");
  const folder = `${place.folder}/proc/self/fd`;
  fs.mkdirSync(folder, { recursive: true });
  fs.symlinkSync(file.path, `${folder}/0`);
  assertEquals(codeOf(() => open(`${folder}/0`)), "segment.file");
  assertEquals(codeOf(() => open(`/proc/self/task/${process.pid}/fd/0`)), "segment.file");
  assertEquals(codeOf(() => open(`/proc/${process.pid}/cwd`)), "segment.file");
  assertThrows(() => open(pathOf(4_000)), SegmentError, "there is no file");
  assertThrows(() => SegmentFile.create(file.path, GEOMETRY, B), SystemError);
  SegmentFile.open(file.path.replace(`${process.pid}`, "self"), B).close();
});
