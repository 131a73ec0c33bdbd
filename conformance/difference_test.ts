// What a failure says: the clause of what failed, and expected beside got, field by field, at every
// level.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { inFolder, kit, kitReport } from "./kit_fixture.ts";
import { compare, differentBytes, namedBy } from "./static/difference.ts";
import { denoRun } from "./kit/programs.ts";

const message = { kind: 1, codec: 0, tag: 0, hex: "00 01 02" };

function texts(...args: Parameters<typeof compare>): string[] {
  return compare(...args).map(({ text }) => text);
}

Deno.test("compare says each field that differs, expected and got, and nothing else", () => {
  const must = { items: [message], end: "nothing" };
  assertEquals(texts({ items: [{ ...message }], end: "nothing" }, must), []);
  // Texts and bytes are the same bytes.
  const text = { kind: 1, codec: 1, tag: 0, text: "ab" };
  assertEquals(texts({ items: [{ ...text, text: "ab" }] }, { items: [text] }), []);
  const got = { items: [{ ...message, tag: 4, hex: "00 01 ff" }], end: "frame.size" };
  assertEquals(texts(got, must), [
    "item 0, tag: expected 0, got 4",
    "item 0, payload from byte 2 on: expected 02, got ff",
    "end: expected nothing, got frame.size",
  ]);
  assertEquals(texts({ items: [], end: "nothing" }, must), [
    "item 0: expected a message of kind 1, codec 0, tag 0: 3 bytes 00 01 02, got none",
    "items: expected 1, got 0",
  ]);
  assertEquals(texts("ok", "full"), ["expected full, got ok"]);
  assertEquals(texts({ code: "peer.failed", reason: "peer.lost" }, "peer.failed"), []);
  assertEquals(texts("peer.failed", { code: "peer.failed", reason: "peer.lost" }), [
    "reason: expected peer.lost, got nothing",
  ]);
  assertEquals(texts("ok", { one_of: ["full", "refused"] }), [
    "expected full, got ok (or one of 1 others)",
  ]);
});

Deno.test("differentBytes shows both from the first byte that differs, and where one ends", () => {
  const bytes = Uint8Array.from({ length: 40 }, (_, index) => index);
  assertEquals(differentBytes(bytes, bytes.slice()), undefined);
  const short = bytes.slice(0, 20);
  const fact = differentBytes(short, bytes)!;
  assertMatch(fact, /^ from byte 20 on: expected 14 15 .* …, got the end, at 20$/);
});

Deno.test("namedBy names what a problem says, or may be about, before all of the case", () => {
  const cited = ["ring.fault", "segment.state_ring", "pipe.fault"];
  const named = (text: string, clauses: string[]) => namedBy(cited, [{ text, clauses }]);
  assertEquals(named("[wait.disarm] x", ["ring.fault"]), ["wait.disarm"]);
  assertEquals(named("x", ["frame.check", "pipe.fault"]), ["pipe.fault"]);
  assertEquals(named("x", ["frame.check"]), ["frame.check", ...cited]);
  assertEquals(named("x", []), cited);
});

Deno.test("a static case that cites four clauses names that of the word that differs", async () => {
  const testee = denoRun("broken/broken.ts", "--fault", "state_silent");
  const args = ["--testee", testee, "--level", "static", "--case", "segment/attach_writer"];
  const { output, report } = await kitReport(args);
  const { broken, clauses } = report.cases[0]!;
  assertEquals(broken, ["segment.state_ring"]);
  assertEquals(clauses.length, 4);
  assertMatch(output, /^ {2}bytes at 128 .*: expected anything but 00 00 00 00, got 00 00 00 00$/m);
  assertMatch(output, /^ {2}\[segment\.state_ring\] .*\n {2}the case shows, too: \[segment\.att/m);
});

Deno.test("a scripted case shows the word that differs, and names its clause", async () => {
  const testee = denoRun("broken/broken.ts", "--fault", "wants_left");
  const args = ["--testee", testee, "--level", "scripted", "--carrier", "bytes"];
  const { output, report } = await kitReport([...args, "--case", "scripted/reader_asks"]);
  const [entry] = report.cases;
  assertEquals(entry!.broken, ["wait.exchange"]);
  assertMatch(entry!.why[0]!, /\[wait\.exchange\] reader_wants: expected 0, got \d+$/);
  const { field, hex } = entry!.differences![0]!.expected;
  assertEquals([field, hex], [
    "reader_wants",
    "00 00 00 00",
  ]);
  assertMatch(output, /channel 0: reader_wants\n {6}expected {2}00 00 00 00 .*\n {6}got {7}\w\w /);
});

Deno.test({
  name: "a live run names the first message that differs, and in which of its fields",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const args = ["--testee", denoRun("bad/liar.ts"), "--carrier", "file", "--level", "live"];
    const { report } = await kitReport([...args, "--case", "live/small_ring_parked"]);
    const { why } = report.cases[0]!;
    assertEquals(why.length, 2);
    assertMatch(why[0]!, /^the second testee, read, message 2, size: expected (\d+), got (\d+)$/);
    assertEquals(why[1], "the second testee, read, 1 of 300 messages differ");
  },
});

Deno.test("what --junit and --md write of a failure is what the console says", async () => {
  await inFolder(async (folder) => {
    const [junit, md] = [`${folder}/r.xml`, `${folder}/r.md`];
    const testee = denoRun("broken/broken.ts", "--fault", "pad_short");
    const args = ["--testee", testee, "--level", "static", "--case", "frame/write_pad"];
    const { code } = await kit([...args, "--junit", junit, "--md", md]);
    assertEquals(code, 1);
    for (const path of [junit, md]) {
      const text = await Deno.readTextFile(path);
      assertStringIncludes(text, "[frame.pad] A writer MUST give a pad a size");
      assert(/expected {2}[\w ]+\n\s+got {7}[\w ]+/.test(text), text);
    }
  });
});
