import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { createServer } from "node:net";
import process from "node:process";
import { fanoutChannel, FanoutWriter } from "../fanout/fanout.ts";
import { layout } from "../memory/layout.ts";
import { recordAt } from "../memory/plan.ts";
import { ClosedError, PeerFailedError, portGeometry, SegmentError } from "../mod.ts";
import { segmentSize, TimeoutError } from "../mod.ts";
import { readMessageAsync } from "../more/raw.ts";
import { propertyChannel, PropertyReader, PropertyWriter } from "../property/property.ts";
import { asNobody, GEOMETRY, Place, test, WAIT } from "./host_fixture.ts";
import * as files from "./files.ts";
import { SegmentFile, SystemError } from "./mod.ts";
import { makeDraft } from "./segment_file_draft.ts";
import * as locks from "./segment_file_lock.ts";
import { EEXIST } from "./system_error.ts";

const A = { endpoint: 0 };
const B = { endpoint: 1 };
const SIZE = segmentSize(GEOMETRY);
const THERE_IS_NONE = "there is no file at this path: nobody has created it yet";

function refuses(code: string, call: () => unknown): void {
  const error = assertThrows(call, SegmentError);
  assertEquals(error.code, code);
}

function refusesSystem(code: string, call: () => unknown): void {
  const error = assertThrows(call, SystemError);
  assertEquals(error.code, code);
}

/** Writes a file of mode 0600 with these bytes. */
function put(path: string, bytes: string | Uint8Array): void {
  const data = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  fs.writeFileSync(path, data, { mode: 0o600 });
}

test("create and open share one segment, and every kind of end works on it", () => {
  using place = new Place();
  using here = SegmentFile.create(place.path, GEOMETRY, A);
  using there = SegmentFile.open(place.path, B);
  using a = here.port<string>();
  using b = there.port<string>();
  a.write("there");
  assertEquals(b.tryRead(), "there");
  b.write("back");
  assertEquals(a.read(), "back");
  a.end();
  assertEquals([b.read(), b.ended], [undefined, true]);
  const info = fs.statSync(place.path);
  assertEquals([info.mode & 0o7777, info.size], [0o600, SIZE]);
  assert(info.blocks * 512 >= SIZE, "all bytes are reserved"); // [segment.file_space]
  // No other file is left in the folder.
  assertEquals(fs.readdirSync(place.folder), ["segment"]);
});

test("use has a property or a fanout attach to the endpoint, and closes it with the file", () => {
  using place = new Place();
  const channels = [propertyChannel({ writer: 0 }), fanoutChannel({ writer: 1, readers: 1 })];
  const geometry = { endpoints: 2, channels };
  using here = SegmentFile.create(place.path, geometry, A);
  using there = SegmentFile.open(place.path, B);
  const neither = () => here.use(() => ({ close: () => {} }));
  assertThrows(neither, TypeError, "nothing has attached");
  // The endpoint is taken, and no longer lent.
  refuses("segment.endpoint", () => PropertyWriter.attach(here.segment, A));
  const writer = here.use((segment, own) => PropertyWriter.attach<string>(segment, own));
  assertThrows(() => here.use(neither), TypeError, "endpoint 0 is in use");
  const fanout = there.use((segment, own) => FanoutWriter.attach<string>(segment, own));
  fanout.write("to nobody");
  writer.set("one");
  using third = SegmentFile.create(`${place.folder}/other`, geometry, B);
  const reader = third.use((segment, own) => PropertyReader.attach(segment, own));
  assertEquals([reader.get(), reader.wait({ timeout: 0 })], [null, false]);
  third.close();
  assertThrows(() => reader.get(), ClosedError);
  here.close();
  assertThrows(() => writer.set("two"), ClosedError);
});

test("[property.slice] who may watch a property finds its writer dead, which is no peer", () => {
  using place = new Place();
  const geometry = { endpoints: 2, channels: [propertyChannel({ writer: 0 })] };
  using there = SegmentFile.create(place.path, geometry, B);
  const reader = there.use((segment, own) => PropertyReader.attach(segment, own));
  // The endpoint is attached, and its record is not locked.
  const state = recordAt(0) + layout.ENDPOINT_STATE_WORD;
  Atomics.store(there.segment.control, state, layout.ENDPOINT_STATE_ATTACHED);
  const error = assertThrows(() => reader.wait(WAIT), PeerFailedError);
  assertEquals(error.reason, "peer.lost");
});

test("a writer and a reader share a one-way segment; each endpoint has one user", () => {
  using place = new Place();
  const geometry = {
    endpoints: 3,
    channels: [{ writer: 0, reader: 1, capacity: 256 }, { writer: 0, reader: 2, capacity: 256 }],
  };
  using here = SegmentFile.create(place.path, geometry, A);
  using there = SegmentFile.open(place.path, { endpoint: 2 });
  refuses("segment.channel", () => here.port());
  refuses("segment.channel", () => here.reader());
  refuses("segment.channel", () => there.reader({ channel: 0 }));
  using writer = here.writer<number>({ channel: 1 });
  using reader = there.reader<number>();
  writer.write(7);
  assertEquals(reader.read(), 7);
  assertThrows(() => here.writer(), TypeError, "endpoint 0 is in use");
});

test("open refuses what others could have put there or can read", async () => {
  using place = new Place();
  const { folder, path } = place;
  using _file = SegmentFile.create(path, GEOMETRY, A);
  const link = `${folder}/link`;
  fs.symlinkSync(path, link);
  refuses("segment.file", () => SegmentFile.open(link, B));
  refuses("segment.file", () => SegmentFile.create(link, GEOMETRY, B));
  refuses("segment.file", () => SegmentFile.open(folder, B));
  const pipe = `${folder}/pipe`;
  spawnSync("mkfifo", ["-m", "600", pipe]);
  refuses("segment.file", () => SegmentFile.open(pipe, B));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${folder}/socket`, resolve));
  refuses("segment.file", () => SegmentFile.open(`${folder}/socket`, B));
  await new Promise((resolve) => server.close(resolve));
  for (const mode of [0o640, 0o604, 0o620, 0o601]) {
    fs.chmodSync(path, mode);
    refuses("segment.file", () => SegmentFile.open(path, B));
    refuses("segment.file", () => SegmentFile.create(path, GEOMETRY, B));
  }
  fs.chmodSync(path, 0o600);
  SegmentFile.open(path, B).close();
});

test("open refuses the file of another user", () => {
  using place = new Place();
  let path = "/etc/passwd"; // belongs to root
  if (process.getuid!() === 0) {
    put(path = place.path, "MILLRACE");
    fs.chownSync(path, 1, 0);
  }
  refuses("segment.file", () => SegmentFile.open(path, B));
  refuses("segment.file", () => SegmentFile.create(path, GEOMETRY, A));
});

test("open refuses a file that holds no segment, with the code of the check", () => {
  using place = new Place();
  const { path } = place;
  refuses("segment.missing", () => SegmentFile.open(path, B));
  put(path, "");
  refuses("segment.size", () => SegmentFile.open(path, B));
  put(path, new Uint8Array(255));
  refuses("segment.size", () => SegmentFile.open(path, B));
  put(path, new Uint8Array(256));
  refuses("segment.unready", () => SegmentFile.open(path, B));
  put(path, "MILLRACE and some text behind it ".repeat(10));
  refuses("segment.magic", () => SegmentFile.open(path, B));
  using _file = SegmentFile.create(path, GEOMETRY, A);
  refuses("segment.endpoint", () => SegmentFile.open(path, A));
  refuses("segment.endpoint", () => SegmentFile.open(path, { endpoint: 2 }));
  SegmentFile.open(path, B).close();
  refuses("segment.endpoint", () => SegmentFile.open(path, B)); // a closed endpoint is not vacant
});

test("what is not there, and what may not be opened, is refused with a code", () => {
  using place = new Place();
  const { folder, path } = place;
  for (const none of ["", path, `${folder}/none/segment`, new URL(`file://${path}`)]) {
    const error = assertThrows(() => SegmentFile.open(none, B), SegmentError, THERE_IS_NONE);
    assertEquals(error.code, "segment.missing");
    assertStringIncludes(error.message, `"${none instanceof URL ? path : none}"`);
  }
  const gone = "there is no file at this path: its process has closed it, or is gone";
  assertThrows(() => SegmentFile.open("/proc/self/fd/999999", B), SegmentError, gone);
  const error = assertThrows(() => SegmentFile.create("", GEOMETRY, A), SegmentError);
  assertEquals(error.code, "segment.missing");
  refusesSystem("ENOTDIR", () => SegmentFile.open("/etc/passwd/segment", B));
  refuses("segment.file", () => SegmentFile.open(`${folder}/`, B));
  refuses("segment.file", () => SegmentFile.create(`${folder}/`, GEOMETRY, B));
  SegmentFile.create(path, GEOMETRY, A).close();
  fs.chmodSync(process.getuid!() === 0 ? folder : path, 0);
  asNobody(() => {
    refusesSystem("EACCES", () => SegmentFile.open(path, B));
    refusesSystem("EACCES", () => SegmentFile.create(path, GEOMETRY, B));
  });
  fs.chmodSync(folder, 0o700);
});

test("a record that is locked is somebody's, whatever its state says", () => {
  using place = new Place();
  using _file = SegmentFile.create(place.path, GEOMETRY, A);
  const other = locks.openOwn(place.path);
  locks.lockRecord(other.fd, 1);
  refuses("segment.endpoint", () => SegmentFile.open(place.path, B));
  files.close(other.fd);
  SegmentFile.open(place.path, B).close();
});

test("create replaces a left-over and an empty file, and takes a live one", () => {
  using place = new Place();
  const { path } = place;
  put(path, "");
  const first = SegmentFile.create(path, GEOMETRY, A);
  const a = first.port<string>();
  {
    using other = SegmentFile.create(path, GEOMETRY, B); // the same file: either comes first
    assertEquals(other.endpoint, 1);
    using b = other.port<string>();
    a.write("same");
    assertEquals(b.tryRead(), "same");
  }
  refuses("segment.endpoint", () => SegmentFile.create(path, GEOMETRY, A));
  const before = fs.statSync(path).ino;
  first.close();
  using second = SegmentFile.create(path, GEOMETRY, B);
  assertEquals(second.endpoint, 1);
  assert(fs.statSync(path).ino !== before, "another file has the name");
  assertEquals(fs.readdirSync(place.folder), ["segment"]);
});

test("create refuses a live file of another geometry, and leaves it alone", () => {
  using place = new Place();
  const { path } = place;
  using here = SegmentFile.create(path, GEOMETRY, A);
  const other = portGeometry({ capacity: 2048 });
  refuses("segment.geometry", () => SegmentFile.create(path, other, B));
  refuses("segment.geometry", () => SegmentFile.create(path, other, A)); // before the endpoint
  using there = SegmentFile.open(path, B);
  here.port().write(1);
  assertEquals(there.port().tryRead(), 1);
});

test("create refuses a file that is no segment, and leaves it alone", () => {
  using place = new Place();
  const { path } = place;
  for (const text of ["MILLRAC", "a letter to somebody"]) {
    put(path, text);
    refuses("segment.file", () => SegmentFile.create(path, GEOMETRY, A));
    assertEquals(fs.readFileSync(path, "utf8"), text);
  }
  put(path, "MILLRACE");
  SegmentFile.create(path, GEOMETRY, A).close();
});

test("create refuses what cannot be before it makes anything", () => {
  using place = new Place();
  const { folder, path } = place;
  const { channels } = GEOMETRY;
  refuses("segment.endpoint", () => SegmentFile.create(path, GEOMETRY, { endpoint: 2 }));
  refuses("segment.endpoint", () => SegmentFile.create(path, GEOMETRY, { endpoint: 0.5 }));
  const none = { endpoints: 0, channels };
  assertThrows(() => SegmentFile.create(path, none, A), RangeError, "endpoints");
  assertThrows(() => SegmentFile.create(path, GEOMETRY, { ...A, timeout: -1 }), RangeError);
  assertThrows(() => SegmentFile.create(path, GEOMETRY, { ...A, spin: -1 }), RangeError);
  assertThrows(() => SegmentFile.create(`${path}\0`, GEOMETRY, A), TypeError, "NUL");
  refusesSystem("ENOENT", () => SegmentFile.create(`${folder}/none/segment`, GEOMETRY, A));
  refusesSystem("ENOTDIR", () => SegmentFile.create("/etc/passwd/segment", GEOMETRY, A));
  assertEquals(fs.readdirSync(folder), []);
});

test("a path may be a URL", () => {
  using place = new Place();
  const url = new URL(`file://${place.folder}/a%20name`);
  using file = SegmentFile.create(url, GEOMETRY, A);
  assertEquals(file.path, `${place.folder}/a name`);
});

test("a path that is neither a string nor the URL of a file is refused", () => {
  using place = new Place();
  const wrong: unknown[] = [5, {}, Symbol("path"), undefined, null, true, [place.path]];
  const urls = [`http://localhost${place.path}`, `data:,${place.path}`, `file://host${place.path}`];
  const escaped = `file://${place.folder}%2fsegment`;
  wrong.push(...[...urls, escaped].map((url) => new URL(url)), new String(place.path));
  wrong.push({ pathname: place.path }, { href: `file://${place.path}`, pathname: place.path });
  for (const path of wrong as string[]) {
    for (
      const call of [
        () => SegmentFile.create(path, GEOMETRY, A),
        () => SegmentFile.open(path, A),
      ]
    ) {
      const { message } = assertThrows(call, TypeError);
      assertStringIncludes(message, "a path is a string or a file: URL");
    }
  }
  assertEquals([fs.readdirSync(place.folder), fs.existsSync("undefined")], [[], false]);
});

test("files that are closed in a loop are given back, although no event loop turns", () => {
  using place = new Place();
  const count = () => fs.readFileSync("/proc/self/maps", "utf8").split("\n").length;
  const before = count();
  for (let round = 0; round < 1500; round++) {
    using here = SegmentFile.create(place.path, GEOMETRY, A);
    using there = SegmentFile.open(place.path, B);
    here.port().tryWrite(round);
    assertEquals(there.port().tryRead(), round);
  }
  // The system has 65,530 mappings for a process; these were 6,000.
  assert(count() - before < 1000, `${count() - before} mappings are left`);
});

test("who opens or replaces a file waits for others that do, up to the timeout", () => {
  using place = new Place();
  const { path } = place;
  const first = SegmentFile.create(path, GEOMETRY, A);
  const other = locks.openOwn(path);
  assert(locks.lockHeader(path, other, Infinity));
  const timed = (call: () => unknown) =>
    assertEquals(assertThrows(call, TimeoutError).code, "wait.timeout");
  timed(() => SegmentFile.open(path, { ...B, timeout: 5 }));
  timed(() => SegmentFile.create(path, GEOMETRY, { ...B, timeout: 5 }));
  first.close();
  timed(() => SegmentFile.create(path, GEOMETRY, { ...B, timeout: 0 }));
  locks.unlockHeader(other.fd);
  SegmentFile.create(path, GEOMETRY, { ...B, timeout: 0 }).close();
  files.close(other.fd);
});

test("lockHeader finds that the name has gone, or stands for another file", () => {
  using place = new Place();
  const { path } = place;
  const first = SegmentFile.create(path, GEOMETRY, A);
  const opened = locks.openOwn(path);
  assertEquals(locks.lockHeader(path, opened, Infinity), true);
  locks.unlockHeader(opened.fd);
  first.close();
  fs.renameSync(path, `${path}2`);
  assertEquals(locks.lockHeader(path, opened, Infinity), false);
  locks.unlockHeader(opened.fd);
  using _second = SegmentFile.create(path, GEOMETRY, A);
  assertEquals(locks.lockHeader(path, opened, Infinity), false);
  files.close(opened.fd);
});

test("where files without a name do not exist, a draft has one of its own", () => {
  using place = new Place();
  const draft = makeDraft(place.path, 4096, true);
  const { mode, size } = fs.statSync(draft.path!);
  assertEquals([mode & 0o7777, size], [0o600, 4096]);
  assertEquals(files.link(draft.path!, place.path), 0);
  assertEquals(files.link(draft.path!, place.path), -EEXIST);
  files.close(draft.fd);
  // No device has so many bytes: the draft is removed again.
  const error = assertThrows(
    () => makeDraft(`${place.folder}/x`, Number.MAX_SAFE_INTEGER, true),
    SystemError,
  );
  assert(error.code === "EFBIG" || error.code === "ENOSPC", error.message);
  assertEquals(fs.readdirSync(place.folder).length, 2);
});

test("close ends all waits, and what comes late touches neither file nor memory", async () => {
  using place = new Place();
  const here = SegmentFile.create(place.path, GEOMETRY, A);
  using there = SegmentFile.open(place.path, B);
  const port = here.port();
  const reads = [port.readAsync(), readMessageAsync(port)];
  const { closed } = port;
  await new Promise((resolve) => setTimeout(resolve, 5)); // by now it sleeps
  const bytes = here.segment.bytes(0, SIZE);
  assertEquals(String.fromCharCode(...bytes.subarray(0, 8)), "MILLRACE");
  here.close();
  here.close();
  for (const read of reads) {
    assertEquals((await assertRejects(() => read, ClosedError)).code, "pipe.closed");
  }
  assertEquals(await closed, undefined);
  assertThrows(() => port.read(), ClosedError);
  assertThrows(() => port.tryWrite(1), ClosedError);
  assertThrows(() => here.port(), TypeError, "closed");
  here.checkPeers();
  port.close();
  assert(bytes.every((byte) => byte === 0), "the file is no longer mapped");
  bytes.fill(1);
  assertEquals(fs.readFileSync(place.path)[0], "M".charCodeAt(0));
  const error = assertThrows(() => there.port().read());
  assertEquals((error as ClosedError).code, "peer.closed");
  assert(!locks.isRecordLocked(locks.openOwn(place.path).fd, 0));
});
