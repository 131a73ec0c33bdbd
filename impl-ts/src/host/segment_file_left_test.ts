/** How `create` treats an existing file: as in use, or as left over. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import * as fs from "node:fs";
import { layout } from "../memory/layout.ts";
import { failEndpoint, type Geometry, portGeometry, SegmentError } from "../mod.ts";
import { writeMany } from "../more/many.ts";
import { recordOffset } from "../memory/plan.ts";
import { GEOMETRY, Peer, Place, test, WAIT } from "./host_fixture.ts";
import * as files from "./files.ts";
import { SegmentFile } from "./mod.ts";
import * as locks from "./segment_file_lock.ts";

const A = { endpoint: 0 };
const B = { endpoint: 1 };
const OTHER = portGeometry({ capacity: 2048 });

/** A hub with three clients: each has a ring to endpoint 0, and a ring from it. */
const HUB: Geometry = {
  endpoints: 4,
  channels: [1, 2, 3].flatMap((client) => [
    { writer: 0, reader: client, capacity: 256 },
    { writer: client, reader: 0, capacity: 256 },
  ]),
};

function codeOf(call: () => unknown): string {
  return assertThrows(call, SegmentError).code;
}

/** Creates a file at a path again, and checks that it is another file, in which both sides meet. */
function assertReplaced(path: string, geometry: Geometry = GEOMETRY): void {
  const before = fs.statSync(path).ino;
  using here = SegmentFile.create(path, geometry, A);
  assert(fs.statSync(path).ino !== before, "it is the same file");
  using there = SegmentFile.open(path, B);
  here.port().write("new");
  assertEquals(there.port().tryRead(), "new");
}

test("[segment.file_left] a client keeps no new server from a file whose server closed", () => {
  for (const geometry of [GEOMETRY, OTHER]) {
    using place = new Place();
    const server = SegmentFile.create(place.path, GEOMETRY, A);
    using client = SegmentFile.open(place.path, B);
    using port = client.port<string>();
    server.port<string>().write("last");
    server.close();
    assertReplaced(place.path, geometry);
    // The old port still reads what was published to it, in its old file.
    assertEquals(port.read(WAIT), "last");
    assertEquals((assertThrows(() => port.read(WAIT)) as SegmentError).code, "peer.closed");
  }
});

test("[segment.file_left] nor one that has a channel to nobody, too", () => {
  for (
    const [writer, reader] of [[1, layout.ENDPOINT_NONE], [1, 1], [
      layout.ENDPOINT_NONE,
      1,
    ]] as const
  ) {
    using place = new Place();
    const ring = { writer: 0, reader: 1, capacity: 256 };
    const { channels } = GEOMETRY;
    const server = SegmentFile.create(
      place.path,
      { endpoints: 2, channels: [...channels, ring] },
      A,
    );
    const { segment } = server;
    const third = (recordOffset(2) + 2 * layout.CHANNEL_DESCRIPTOR_SIZE) >> 2;
    segment.words(0, segment.size).set([9, writer, reader], third); // an unknown kind
    using _client = SegmentFile.open(place.path, B);
    server.close();
    assertReplaced(place.path);
  }
});

test("[segment.file_left] nor one that opened the file when its server had gone", () => {
  using place = new Place();
  {
    using server = SegmentFile.create(place.path, GEOMETRY, A);
    using port = server.port<string>();
    writeMany(port, ["one", "two"]);
    port.end();
  }
  using client = SegmentFile.open(place.path, B);
  using port = client.port<string>();
  assertEquals(port.read(WAIT), "one");
  assertReplaced(place.path);
  assertEquals([port.read(WAIT), port.read(WAIT), port.ended], ["two", undefined, true]);
});

test("[segment.file_left] nor one whose server was killed", async () => {
  using place = new Place();
  await using server = await Peer.start({ path: place.path, creates: true, mode: "idle" });
  using client = SegmentFile.open(place.path, B);
  assertEquals(codeOf(() => SegmentFile.create(place.path, GEOMETRY, A)), "segment.endpoint");
  server.kill();
  await server.ended();
  assertReplaced(place.path);
  assertEquals(
    (assertThrows(() => client.port().read(WAIT)) as { reason?: string }).reason,
    "peer.lost",
  );
});

test("[segment.file_left] nor one whose server is marked failed, and lives", () => {
  using place = new Place();
  using server = SegmentFile.create(place.path, GEOMETRY, A);
  using _client = SegmentFile.open(place.path, B);
  failEndpoint(server.segment, 0, "frame.size", server.mechanism);
  assertReplaced(place.path);
});

test("[segment.file_left] what somebody waits in for somebody who can come is in use", () => {
  using place = new Place();
  const { path } = place;
  {
    using first = SegmentFile.create(path, GEOMETRY, B); // the client came first
    assertEquals(codeOf(() => SegmentFile.create(path, OTHER, A)), "segment.geometry");
    assertEquals(codeOf(() => SegmentFile.create(path, GEOMETRY, B)), "segment.endpoint");
    using second = SegmentFile.create(path, GEOMETRY, A);
    first.port().write("same");
    assertEquals(second.port().tryRead(), "same");
    assertEquals(codeOf(() => SegmentFile.create(path, GEOMETRY, A)), "segment.endpoint");
    assertEquals(codeOf(() => SegmentFile.create(path, OTHER, A)), "segment.geometry");
  }
  assertReplaced(path, OTHER);
});

test("[segment.file_left] who lives keeps its own endpoint, though its peer has gone", () => {
  using place = new Place();
  const { path } = place;
  using first = SegmentFile.create(path, GEOMETRY, A);
  SegmentFile.open(path, B).close();
  assertEquals(codeOf(() => SegmentFile.create(path, GEOMETRY, A)), "segment.endpoint");
  // The other side can begin again, because no endpoint can meet the first one any more.
  using second = SegmentFile.create(path, GEOMETRY, B);
  using third = SegmentFile.open(path, A);
  third.port().write("new");
  assertEquals(second.port().tryRead(), "new");
  assertEquals((assertThrows(() => first.port().read(WAIT)) as SegmentError).code, "peer.closed");
});

test("[segment.file_left] a lock without an endpoint that is vacant or attached is nobody", () => {
  using place = new Place();
  const { path } = place;
  SegmentFile.create(path, GEOMETRY, A).close();
  const other = locks.openOwn(path);
  locks.lockRecord(other.fd, 0);
  assertReplaced(path);
  files.close(other.fd);
  // A locked record that is vacant belongs to an owner that is about to attach.
  const third = SegmentFile.create(path, GEOMETRY, A);
  const arriving = locks.openOwn(path);
  locks.lockRecord(arriving.fd, 1);
  assertEquals(codeOf(() => SegmentFile.create(path, GEOMETRY, B)), "segment.endpoint");
  third.close();
  assertEquals(codeOf(() => SegmentFile.create(path, GEOMETRY, B)), "segment.endpoint");
  SegmentFile.create(path, GEOMETRY, A).close();
  files.close(arriving.fd);
});

test("[segment.file_left] a hub without its hub is left over, one without a client is not", () => {
  using place = new Place();
  const { path } = place;
  const hub = SegmentFile.create(path, HUB, { endpoint: 0 });
  using one = SegmentFile.open(path, { endpoint: 1 });
  const two = SegmentFile.open(path, { endpoint: 2 });
  two.close();
  assertEquals(codeOf(() => SegmentFile.create(path, HUB, { endpoint: 2 })), "segment.endpoint");
  assertEquals(codeOf(() => SegmentFile.create(path, OTHER, { endpoint: 0 })), "segment.geometry");
  SegmentFile.create(path, HUB, { endpoint: 3 }).close(); // the same file, which is in use
  assertEquals(codeOf(() => SegmentFile.create(path, HUB, { endpoint: 3 })), "segment.endpoint");
  hub.close();
  using again = SegmentFile.create(path, HUB, { endpoint: 2 });
  using _new = SegmentFile.create(path, HUB, { endpoint: 1 });
  assertEquals([one.endpoint, again.endpoint], [1, 2]);
  assertEquals(codeOf(() => SegmentFile.create(path, HUB, { endpoint: 1 })), "segment.endpoint");
});

test("[segment.file_left] two that could come are no use to one who waits for another", () => {
  using place = new Place();
  const ring = (writer: number, reader: number) => ({ writer, reader, capacity: 256 });
  const two: Geometry = { endpoints: 4, channels: [ring(0, 1), ring(2, 3)] };
  const first = SegmentFile.create(place.path, two, A);
  using _second = SegmentFile.open(place.path, B);
  assertEquals(codeOf(() => SegmentFile.create(place.path, GEOMETRY, A)), "segment.geometry");
  first.close();
  assertReplaced(place.path);
});

test("[segment.file_left] an endpoint that has no peers waits for nobody, and is in use", () => {
  using place = new Place();
  const alone: Geometry = { endpoints: 2, channels: [] };
  using _first = SegmentFile.create(place.path, alone, A);
  assertEquals(codeOf(() => SegmentFile.create(place.path, GEOMETRY, B)), "segment.geometry");
  using second = SegmentFile.create(place.path, alone, B);
  assertEquals(second.segment.channels, []);
});
