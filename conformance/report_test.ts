// What the kit reports beside passed and failed: what was not played and why, who did not start,
// and where the time went.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Arena } from "./kit/arena.ts";
import { inFolder, kit, kitReport } from "./kit_fixture.ts";
import { Collector, unplayed, unplayedMarkdown, unplayedText } from "./kit/report.ts";
import { countsText } from "./kit/output.ts";
import { denoRun, ownPrograms } from "./kit/programs.ts";
import { Runner } from "./kit/runner.ts";
import { watchedCase } from "./kit/scripts/watch.ts";
import { type KitCase, PASS, type Result, Trouble, Wrong } from "./kit/verdict.ts";

const GOOD = denoRun("broken/broken.ts");

/** Collects what cases give in an arena that nobody looks into. */
async function collect(cases: KitCase<Arena>[], hello: object = {}): Promise<Collector> {
  const collector = new Collector();
  const said = { levels: ["scripted"], carriers: ["shared"], nouns: ["pipe"], lacks: [], ...hello };
  const arena = {
    connect: () => Promise.resolve({ hello: said }),
    kill: () => Promise.resolve(),
    close: () => Promise.resolve(),
  } as unknown as Arena;
  await new Runner(collector).run({
    level: "scripted",
    carrier: "deno",
    kind: "shared",
    testees: ["it"],
    ways: ["it"],
    cases,
    open: () => Promise.resolve(arena),
  });
  return collector;
}

Deno.test("what the kit cannot show is no decline of the testee", async () => {
  const entry = watchedCase({
    id: "scripted/x",
    about: "X.",
    clauses: ["wait.ring"],
    role: "writer",
    play: () => Promise.resolve("the kit cannot sleep here"),
  });
  const shown = await collect([entry], { waits: ["block"] });
  assertEquals(shown.verdicts[0]!.status, "unshown");
  assertEquals(shown.verdicts[0]!.by, undefined);
  assertEquals(countsText(shown.counts()), "1 not shown");
  assertMatch(
    unplayedText(shown.verdicts),
    /^not shown, by a limit of the kit.*:\n {2}the kit can/,
  );
  assertEquals(shown.failures(), []);
  // The same case of a testee that does not block is its own affair.
  const declined = await collect([entry], { waits: ["poll"] });
  assertEquals(countsText(declined.counts()), "1 declined");
  assertEquals(unplayedText(declined.verdicts).split("\n"), [
    "declined, by testee and reason:",
    "  it does not block: 1 in scripted deno",
    "    scripted/x",
  ]);
});

Deno.test("who fails a case of moments plays it again, and fails by the second time", async () => {
  const plays = async (outcomes: (Result | Error)[], isTimed: boolean) => {
    let played = 0;
    const entry: KitCase<Arena> = {
      id: "scripted/x",
      about: "X.",
      clauses: ["wait.ring"],
      ...(isTimed && { isTimed }),
      declinedBy: () => undefined,
      run() {
        const outcome = outcomes[played++]!;
        return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
      },
    };
    const { verdicts: [verdict] } = await collect([entry], { waits: ["block"] });
    return { played, status: verdict!.status, why: verdict!.why };
  };
  const late = new Wrong("[wait.ring] late");
  const none = new Trouble("timeout", "no reply");
  const why = ["failed once and not again in 2 more plays: [wait.ring] late"];
  assertEquals(await plays([late, PASS, PASS], true), { played: 3, status: "unshown", why });
  assertEquals((await plays([late, PASS, none], true)).status, "timeout");
  assertEquals((await plays([none, late], true)).status, "fail");
  assertEquals((await plays([late], false)).status, "fail");
  assertEquals((await plays([new Trouble("error", "gone")], true)).status, "error");
});

Deno.test("each decline stands in the report with its testee and its reason", async () => {
  await inFolder(async (folder) => {
    const md = `${folder}/r.md`;
    const args = ["--testee", "@python", "--level", "static", "--case", "ring/*", "--md", md];
    const { output, report } = await kitReport(args);
    const declined = report.cases.filter(({ status }) => status === "declined");
    assert(declined.length > 3, output);
    for (const { by, why } of declined) assertEquals([by, why.length], ["python", 1]);
    const reasons = new Set(declined.flatMap(({ why }) => why));
    const text = await Deno.readTextFile(md);
    for (const reason of reasons) {
      const ids = declined.filter(({ why }) => why[0] === reason).map(({ id }) => id);
      const more = ids.length > 3 ? ` and ${ids.length - 3} more` : "";
      const lines = `  python ${reason}: ${ids.length} in static bytes\n    ` +
        ids.slice(0, 3).join(", ") + more;
      assertStringIncludes(output, lines);
      const row = ["python", reason, ids.length, "static bytes", ids.join(", ")].join(" | ");
      assertStringIncludes(text, row);
    }
    assert(reasons.has("lacks lending"));
  });
});

Deno.test("unplayed groups by testee and reason, and names each case and place once", () => {
  const verdict = (id: string, carrier: string, by: number) => ({
    id,
    level: "live" as const,
    carrier,
    testees: ["a", "b"],
    status: "declined" as const,
    clauses: [],
    about: "",
    seconds: 0,
    why: ["lacks inbox"],
    by,
  });
  const verdicts = [verdict("x", "deno", 0), verdict("x", "node", 0), verdict("y", "node", 1)];
  const [first, second] = unplayed(verdicts);
  const places = ["live deno", "live node"];
  assertEquals(first, { who: "a", why: "lacks inbox", count: 2, ids: ["x"], places });
  assertEquals([second!.who, second!.count], ["b", 1]);
  assertEquals(unplayedMarkdown([]), "");
});

Deno.test("a testee that does not start is reported once; its cases are not run", async () => {
  const testee = "sh -c 'echo no >&2; exit 3'";
  const args = ["--testee", testee, "--level", "static", "--level", "scripted"];
  const { code, output, report } = await kitReport(args);
  assertEquals(code, 1);
  const { error, not_run: notRun, ...others } = report.counts;
  assertEquals(error, 1);
  assert(notRun > 400 && Object.values(others).every((count) => count === 0), output);
  assertEquals([...output.matchAll(/^(ERROR|FAIL|TIMEOUT) /gm)].length, 1);
  assertMatch(output, /^ERROR testee does not start: .* exit code 3; on standard error: no \(/m);
  assertMatch(output, /^1 error, \d+ not run$/m);
  for (const { status, by } of report.cases.slice(1)) {
    assertEquals([status, by], ["not_run", "testee"]);
  }
});

Deno.test("a testee that does not start any more is not started for each case", async () => {
  let starts = 0;
  const entry = (id: string): KitCase<Arena> => ({
    id,
    about: "",
    clauses: [],
    declinedBy: () => undefined,
    run: () => Promise.resolve({ status: "pass", why: [] }),
  });
  const collector = new Collector();
  const runner = new Runner(collector);
  const { Trouble } = await import("./kit/verdict.ts");
  const connect = () => {
    starts++;
    return Promise.reject(new Trouble("timeout", "no reply within 30.0 s"));
  };
  const group = (way: string, arena: object) => ({
    level: "live" as const,
    carrier: "file",
    kind: "file" as const,
    testees: ["good", "bad"],
    ways: ["good", way],
    cases: ["x", "y"].map(entry),
    open: () => Promise.resolve(arena as Arena),
  });
  const close = () => Promise.resolve();
  const hello = { levels: ["live"], carriers: ["file"] };
  await runner.run(group("bad", {
    close,
    connect: (index: number) => index === 0 ? Promise.resolve({ hello }) : connect(),
  }));
  await runner.run(group("bad", { close, connect }));
  assertEquals(starts, 1);
  assertEquals(collector.verdicts.map(({ status }) => status), [
    ...["timeout", "not_run"],
    ...["not_run", "not_run"],
  ]);
  assertEquals(collector.verdicts[0]!.by, 1);
  // In another way it may start.
  await runner.run(group("bad in another way", {
    close,
    connect: () => Promise.resolve({ hello }),
  }));
  assertEquals(collector.counts().pass, 2);
});

Deno.test("the seconds beside the cells are accounted for, and add up", async () => {
  const slow = `sleep 0.5; exec ${GOOD}`;
  const args = ["--testee", `sh -c '${slow}'`, "--level", "static", "--case", "ring/example*"];
  const { output, report } = await kitReport(args);
  const { cases, builds, starts, ends, rest } = report.spent;
  const sum = cases + builds + starts + ends + rest;
  assert(Math.abs(sum - report.seconds) < 0.1, JSON.stringify(report.spent));
  assert(starts >= 0.5, `${starts} s to start what sleeps for half a second`);
  assert(cases < starts && rest < 0.5, JSON.stringify(report.spent));
  assertMatch(output, /^\d+\.\d s: \d+\.\d s in cases, \d+\.\d s starting testees and places/m);
});

Deno.test("a failed live run keeps nothing unless it is told where, and says how", async () => {
  await inFolder(async (folder) => {
    const args = ["--testee", denoRun("bad/liar.ts"), "--carrier", "file"];
    args.push("--level", "live", "--case", "live/small_ring_parked");
    const silent = await kit(args, { cwd: folder });
    assertEquals(silent.code, 1, silent.output);
    assertEquals([...Deno.readDirSync(folder)], []);
    assertMatch(silent.output, /^ {2}kept: nothing; --save FOLDER does$/m);
    const { output } = await kit([...args, "--save", "kept"], { cwd: folder });
    const place = /^ {2}kept: (.*)$/m.exec(output)![1]!;
    const names = [...Deno.readDirSync(`${folder}/${place}`)].map(({ name }) => name).sort();
    assertEquals(names, ["image.hex", "plan.json", "testee_1.json", "testee_2.json"]);
  });
});

Deno.test("--help names the testees of the repository", async () => {
  const { code, output } = await kit(["--help"]);
  assertEquals(code, 0);
  for (const { name } of ownPrograms()) assertMatch(output, new RegExp(`@${name}\\b`));
});
