// The kit as it is used: the whole matrix once, by its command line, and what it reports; what it
// sends; and that it can tell right from wrong.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Arena } from "./kit/arena.ts";
import { Branch, fill, folded, grow, Workload } from "./kit/live/workload.ts";
import { bytes } from "./kit/carriers/bytes.ts";
import { Connection, replyProblem } from "./kit/connection.ts";
import { crc32, Transcript } from "./kit/crc32.ts";
import type { Link } from "./kit/link.ts";
import { crowdCases } from "./kit/crowds/cases.ts";
import { LIVE_PLANS, liveCases } from "./kit/live/cases.ts";
import { digest, judgePart } from "./kit/live/plan.ts";
import { toPattern } from "./kit/plan.ts";
import { CARRIERS, denoRun, ownPrograms } from "./kit/programs.ts";
import { readKnown, type Report } from "./kit/report.ts";
import { FILES } from "./kit/scripts/files_cases.ts";
import { MAILBOXES, SCRIPTS, WATCHED } from "./kit/scripts/mod.ts";
import { loadStaticCases, staticCases } from "./kit/static_level.ts";
import { liveStreams } from "./kit/streams/live.ts";
import { STREAMS } from "./kit/streams/stopping.ts";
import { inFolder, kit, ROOT, schemaOf } from "./kit_fixture.ts";
import { loadClauses } from "./static/coverage.ts";
import { randomPlan } from "./kit/live/level.ts";
import type { KitCase } from "./kit/verdict.ts";
import { LocalLink } from "./kit/worker_link.ts";
import { small } from "./testees/broken/adapter.ts";
import type { Adapter } from "./testees/server.ts";
import { typescript } from "./testees/typescript/adapter.ts";

const GOOD = denoRun("broken/broken.ts");
const BROKEN = denoRun("broken/broken.ts", "--fault", "pad_short");

Deno.test("the whole matrix: every cell is run, or says why not, and nothing fails", async () => {
  const places = CARRIERS.map(({ name }) => name).filter((name) => name !== "stream");
  // Who is alone is asked in turns with the kit, and streams mostly wait for times to pass: both
  // leave a processor to the others, where two threads meet at once.
  const runs = [["bytes"], places, ["stream"]];
  const reports = await Promise.all(runs.map(playAll));
  const cells = reports.flatMap((report) => report.cells);
  const programs = ownPrograms();
  const names = programs.map(({ name }) => name);
  for (const { name } of programs.filter((each) => each.command ?? each.worker)) {
    for (const level of ["static", "scripted", "mailbox"]) {
      const cell = cells.find((each) =>
        each.level === level && each.carrier === "bytes" && each.testees.join() === name
      );
      assert(
        cell !== undefined && (cell.empty !== undefined || cell.counts.pass > 0),
        `${name} has passed nothing at ${level}, and nobody says why`,
      );
    }
  }
  // Every writer against every reader, in each place where both can be.
  for (const { name: carrier, hasRoom } of CARRIERS) {
    const live = cells.filter((cell) => cell.level === "live" && cell.carrier === carrier);
    const pairs = live.filter(({ testees }) => testees.length === 2);
    assertEquals(pairs.length, names.length ** 2);
    // And every writer with all others as its readers, where there is room for many.
    const crowds = live.filter(({ testees }) => testees.length > 2);
    const writers = new Set(crowds.map(({ testees }) => testees[0]));
    assertEquals(writers.size, crowds.length);
    assert(hasRoom === undefined ? crowds.length === 0 : crowds.length > 1, carrier);
    for (const { testees, counts, empty } of crowds) {
      const isPlayed = empty === undefined && counts.pass > 3;
      assert(isPlayed, `${testees} on ${carrier}: ${empty ?? counts.pass}`);
    }
    for (const { testees, counts, empty } of pairs) {
      assert(
        empty !== undefined || counts.pass > 0,
        `${testees} on ${carrier}: nothing, no reason`,
      );
    }
    // A place that this machine lacks; where nothing may be skipped, its cases are errors.
    if (pairs.some(({ empty = "" }) => / finds no /.test(empty))) continue;
    const least = carrier === "stream" ? 1 : 3;
    assert(pairs.filter(({ empty }) => empty === undefined).length >= least);
  }
});

/** Runs the kit in some places, where nothing may fail, and returns its report. */
function playAll(carriers: string[]): Promise<Report> {
  return inFolder(async (folder) => {
    const [json, junit, md] = ["json", "xml", "md"].map((end) => `${folder}/report.${end}`);
    const args = ["--json", json!, "--junit", junit!, "--md", md!, "--save", `${folder}/kept`];
    for (const carrier of carriers) args.push("--carrier", carrier);
    if (Deno.env.get("MILLRACE_TEST_ALL") !== "1") args.push("--brief");
    const { code, output, errors } = await kit(args);
    // What failed stands before the table; the counts after it.
    const failed = output.slice(0, output.indexOf("\n| "));
    assertEquals(code, 0, `${failed.slice(-8_000)}\n${output.slice(-400)}${errors.slice(-4_000)}`);
    const report: Report = JSON.parse(await Deno.readTextFile(json!));
    const validate = await schemaOf("report.schema.json");
    assert(validate(report), JSON.stringify(validate.errors?.slice(0, 3)));
    const { pass, declined, unshown } = report.counts;
    assertEquals(pass + declined + unshown, report.cases.length);
    for (const { status, why } of report.cases) assertEquals(status === "pass", why.length === 0);
    assertMatch(await Deno.readTextFile(junit!), /^<\?xml .*\n<testsuites>\n {2}<testsuite name=/);
    assertStringIncludes(await Deno.readTextFile(md!), "# Millrace conformance");
    console.log(output.slice(output.indexOf("\n\n")));
    return report;
  });
}

Deno.test("a failed case prints clause, bytes and the command that runs it again", async () => {
  await inFolder(async (folder) => {
    const args = ["--testee", BROKEN, "--level", "static", "--case", "frame/write_pad"];
    const { code, output } = await kit([...args, "--json", `${folder}/r.json`]);
    assertEquals(code, 1);
    assertMatch(output, /^FAIL frame\/write_pad \(testee, bytes\)$/m);
    assertMatch(output, /^ {2}\[frame\.pad\] A writer MUST give a pad a size such that/m);
    assertMatch(output, /^ {6}expected .*\n {6}got /m);
    const report: Report = JSON.parse(await Deno.readTextFile(`${folder}/r.json`));
    const again = report.cases[0]!.rerun;
    assertStringIncludes(output, `again: ${again}`);
    assertMatch(
      again,
      /^\.\/millrace conformance --testee '.*' --level static --carrier bytes --case/,
    );
    // What stands after the program's name, as the shell takes it.
    const words = again.replace("./millrace conformance ", "");
    const main = `'${Deno.execPath()}' run -A --no-check --config deno.json conformance/main.ts`;
    const shell = new Deno.Command("sh", { args: ["-c", `${main} ${words}`], cwd: ROOT });
    const second = await shell.output();
    assertEquals(second.code, 1);
    assertMatch(new TextDecoder().decode(second.stdout), /^FAIL frame\/write_pad/m);
  });
});

Deno.test("a known failure does not fail the run, and one that passes does", async () => {
  await inFolder(async (folder) => {
    const list = `${folder}/known.txt`;
    await Deno.writeTextFile(list, "# of a first version\nframe/write_pad bytes testee # later\n");
    const args = ["--level", "static", "--case", "frame/write_pad", "--known-failing", list];
    const known = await kit([...args, "--testee", BROKEN]);
    assertEquals(known.code, 0, known.output);
    assertStringIncludes(known.output, "1 failed, 1 known");
    const stale = await kit([...args, "--testee", GOOD]);
    assertEquals(stale.code, 1);
    assertStringIncludes(stale.output, "KNOWN FAILURE THAT PASSES: frame/write_pad bytes testee");
  });
  assertEquals(readKnown("a/b file x+y\n\n# c\n")[0], {
    line: "a/b file x+y",
    id: "a/b",
    carrier: "file",
    testees: "x+y",
  });
});

Deno.test("wrong usage says what is wrong and ends with 2", async () => {
  for (
    const [args, why] of [
      [["--level", "high"], /no level high: static, /],
      [["--carrier", "pigeon"], /no carrier pigeon: bytes, /],
      [["--testee", "@nobody"], /no testee @nobody: @typescript, /],
      [["--seconds", "0"], /--seconds takes a whole number from 1 on, not 0/],
      [["--seed", "x"], /--seed takes a whole number/],
      [["--unheard-of"], /unheard-of/],
      [["--case", "nothing/*"], /no case fits/],
      [["--known-failing", "not/there"], /not\/there|No such file/],
    ] as [string[], RegExp][]
  ) {
    const { code, errors } = await kit(args);
    assertEquals(code, 2, args.join(" "));
    assertMatch(errors, why);
  }
  const { code, output } = await kit(["--list", "--level", "live"]);
  assertEquals(code, 0);
  const all = [...liveCases(""), ...liveStreams(""), ...crowdCases("", 3)];
  assertEquals(output.trim().split("\n").length, all.length);
});

Deno.test("Ctrl-C prints what there is and ends with 130", async () => {
  await inFolder(async (folder) => {
    const main = `${ROOT}conformance/main.ts`;
    const args = ["run", "-A", "--no-check", main, "--testee", GOOD, "--json", `${folder}/r.json`];
    const child = new Deno.Command(Deno.execPath(), { args, cwd: ROOT, stdout: "piped" }).spawn();
    let output = "";
    let isAsked = false;
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      output += text;
      if (isAsked || !/^static /m.test(output)) continue;
      isAsked = true; // a second one would not let it finish
      child.kill("SIGINT");
    }
    assertEquals((await child.status).code, 130);
    assertStringIncludes(output, "interrupted; ");
    const report: Report = JSON.parse(await Deno.readTextFile(`${folder}/r.json`));
    assert(report.interrupted && report.cases.length > 100);
  });
});

Deno.test("outside of the checkout, the kit runs on what it is packed with", async () => {
  await inFolder(async (folder) => {
    // What a package of it holds: the kit, the chapters with their numbers, and what it imports.
    for (const path of ["conformance", "spec", "impl-ts/src", "impl-zig", "tools"]) {
      await copy(`${ROOT}${path}`, `${folder}/${path}`);
    }
    const { imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ imports }));
    const args = ["--testee", GOOD, "--level", "static", "--case", "frame/*"];
    const main = `${folder}/conformance/main.ts`;
    const { code, output, errors } = await kit(args, { cwd: "/", main });
    assertEquals(code, 0, errors);
    assertMatch(output, /^static {3}bytes {2}testee +\d+ passed/m);
  });
});

/** Copies the texts of a folder. */
async function copy(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory && name !== "toolchain") await copy(`${from}/${name}`, `${to}/${name}`);
    else if (/\.(ts|jsonl?|md)$/.test(name)) {
      await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
    }
  }
}

/** Plays cases on a testee in this thread, and counts its commands, which the schema must allow. */
async function playChecked(
  adapter: Adapter,
  cases: KitCase<Arena>[],
  seen: Map<string, number>,
): Promise<void> {
  const validate = await schemaOf("protocol/command.schema.json");
  const local = new LocalLink(adapter);
  const link: Link = {
    async send(command) {
      const name = (command as { command: string }).command;
      // Two are sent to be declined, or with something in them to be ignored.
      if (name !== "unheard_of" && !("unheard_of" in command)) {
        assert(validate(command), JSON.stringify([command, validate.errors?.at(-1)]));
      }
      seen.set(name, (seen.get(name) ?? 0) + 1);
      await local.send(command);
    },
    next: () => local.next(),
    notes: () => "",
    kill: () => Promise.resolve(),
  };
  const connection = await Connection.start(link);
  assertEquals(await connection.tryUnknown(), undefined);
  assertEquals(await connection.tryMember(), undefined);
  const lone = await bytes.open([{ name: "local" }]);
  const arena = { ...lone, connect: () => Promise.resolve(connection) };
  for (const entry of cases) {
    if (entry.declinedBy(connection.hello, 0) !== undefined) continue;
    assertEquals((await entry.run(arena)).status, "pass", entry.id);
  }
}

Deno.test("every command of the kit is as command.schema.json says", async () => {
  const all = [...staticCases(loadStaticCases()), ...SCRIPTS, ...MAILBOXES];
  const ofCalls = all.filter(({ id }) => /^(?:call\/|scripted\/call_)/.test(id));
  const seen = new Map<string, number>();
  await playChecked(typescript, all, seen);
  await playChecked(small, ofCalls, seen);
  const names = ["start", "open", "read", "peek", "release", "write", "claim", "finish", "end"];
  const others = ["abandon", "publish", "vacate", "resume", "close", "patch", "dump", "drop"];
  const calls = ["call", "notify", "give_up", "outcome", "item", "told"];
  for (const name of [...names, ...others, ...calls]) {
    assert(seen.has(name), `${name} is never sent`);
  }
  const validate = await schemaOf("protocol/command.schema.json");
  const task = { ...{ role: "tree", seed: 1, capacity: 256, count: 0 }, depth: 3, width: 2 };
  const rest = { plain: true, wait: "block", then: "end", record: true };
  const run = { id: 1, command: "run", handle: 1, timeout_ms: 1, task: { ...task, ...rest } };
  assert(validate(run), JSON.stringify(validate.errors?.at(-1)));
  const place = { handle: 1, carrier: "shared", name: "memory", kind: "attach", role: "writer" };
  const open = { id: 1, command: "open", ...place, values: false, encodes: true };
  assert(validate(open), JSON.stringify(validate.errors?.at(-1)));
});

Deno.test("every script and live run has an id of its own, and cites clauses that exist", () => {
  const clauses = new Set(loadClauses().map(({ id }) => id));
  const scripts = [...SCRIPTS, ...WATCHED, ...FILES, ...MAILBOXES, ...STREAMS];
  const lives = [...liveCases(""), ...liveStreams(""), ...crowdCases("", 3)];
  const all = [...scripts, ...lives];
  assertEquals(new Set(all.map(({ id }) => id)).size, all.length);
  for (const entry of all) {
    assert(entry.clauses.length > 0, entry.id);
    for (const clause of entry.clauses) assert(clauses.has(clause), `${entry.id}: [${clause}]`);
    assertMatch(entry.about, /^[A-Z`].*[.]$/);
  }
});

Deno.test("outliveTrouble: a testee that breaks down unasked does not end the kit", async () => {
  const end = async (error: string) => {
    const script = `
      import { outliveTrouble, Trouble } from "./kit/verdict.ts";
      outliveTrouble();
      Promise.reject(new ${error});
      setTimeout(() => Deno.exit(7), 100);
    `;
    const cwd = import.meta.dirname!;
    const args = ["eval", "--ext=ts", script];
    return (await new Deno.Command(Deno.execPath(), { args, cwd, stderr: "null" }).output()).code;
  };
  assertEquals(await end('Trouble("error", "it crashed")'), 7);
  assertEquals(await end('Error("a mistake of ours")'), 1);
});

Deno.test("replyProblem names the member that is wrong", () => {
  const fails = (command: "read" | "start" | "run" | "open", reply: unknown, pattern: RegExp) => {
    assertMatch(replyProblem(command, reply) ?? "nothing", pattern);
  };
  assertEquals(replyProblem("read", { id: 1, result: { end: "nothing" } }), undefined);
  fails("read", { id: 1, result: { end: "never" } }, /`result\/end` must be equal to one of/);
  fails("read", { id: "1", result: { end: "ended" } }, /`id` must be integer/);
  fails("read", 7, /the reply must be object/);
  fails("open", { id: 1, error: { reason: "none" } }, /must have required property 'code'/);
  fails("start", { id: 1, result: { protocol: 2 } }, /`result/);
  fails("run", { id: 1, result: { count: 1, size: 0, crc32: -1, end: "done" } }, /`result\/crc32`/);
});

Deno.test("judgePart finds what differs from the messages of the seed", () => {
  const plan = LIVE_PLANS.find(({ id }) => id === "live/stream_parked")!;
  const { count, size, crc32, record } = digest(plan, plan.second, plan.count, true);
  const good = { count, size, crc32, end: "ended", record: record! };
  const problems = (ran: object) =>
    judgePart(plan, plan.second, { ...good, ...ran }, "peer.lost").map(({ text }) => text)
      .join("\n");
  assertEquals(problems({}), "");
  assertMatch(problems({ crc32: crc32 ^ 1 }), /its 400 messages: expected .* CRC-32 .*, got /);
  assertMatch(problems({ count: count - 1 }), /messages: expected 400, got 399/);
  assertMatch(problems({ end: "wait.timeout" }), /end: expected ended, got wait\.timeout/);
  const other = digest({ ...plan, seed: plan.seed + 1 }, plan.second, plan.count, true);
  const told = { size: other.size, crc32: other.crc32 };
  assertMatch(
    problems({ ...told, record: other.record }),
    /message 0, size: expected \d+, got \d+/,
  );
  assertMatch(problems({ ...told, record: other.record }), /\d+ of 400 messages differ/);
  assertMatch(problems({ ...told, record: undefined }), /its 400 messages: expected \d+ bytes/);
  const without = [...record!.slice(0, 7), ...record!.slice(8), record![0]!];
  assertMatch(problems({ ...told, record: without }), /message 7 is missing: the next stands/);
  const twice = [...record!.slice(0, 8), ...record!.slice(7, -1)];
  assertMatch(problems({ ...told, record: twice }), /message 8: the one before comes again/);
});

Deno.test("the workload of the protocol's README is that of the kit", async () => {
  const text = await Deno.readTextFile(new URL("protocol/README.md", import.meta.url));
  const rows = [...text.matchAll(/^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$/gm)];
  assertEquals(rows.length, 6);
  const workload = new Workload(1, 256);
  const transcript = new Transcript();
  for (const row of rows) {
    const message = workload.next();
    const payload = fill(message, new Uint8Array(workload.sizeMax));
    transcript.add(message.tag, payload);
    const { tag, size, first } = message;
    const must = [tag, size, first, crc32(payload), transcript.crc32];
    assertEquals(row.slice(1).map(Number), must);
  }
});

Deno.test("the trees of the protocol's README are those of the kit", async () => {
  const text = await Deno.readTextFile(new URL("protocol/README.md", import.meta.url));
  const found = /depth 2 and width 3 is (\d+), that of depth 6 (\d+)\./.exec(text);
  const values = [2, 6].map((depth) => folded(grow(1, depth, 3)));
  assertEquals(found?.slice(1).map(Number), values);
  // All that may come of a child comes of some.
  const ways = new Set<string>();
  for (let seed = 1; seed < 200; seed++) {
    const branch = new Branch(seed, 1, 3);
    for (let child = branch.next(); child !== undefined; child = branch.next()) ways.add(child.way);
  }
  assertEquals([...ways].sort(), ["fail", "hold", "none", "note", "tree"]);
  assertEquals(grow(1, 63, 1).calls, 64);
});

Deno.test("randomPlan: a seed stands for one run, and seeds for different ones", () => {
  const plans = Array.from({ length: 50 }, (_, index) => JSON.stringify(randomPlan(index + 1)));
  assertEquals(JSON.stringify(randomPlan(7)), plans[6]);
  assertEquals(new Set(plans).size, plans.length);
});

Deno.test("toPattern: a star stands for anything, and nothing else for anything else", () => {
  assert(toPattern("frame/*").test("frame/write_pad"));
  assert(!toPattern("frame/*").test("xframe/a"));
  assert(!toPattern("frame.write").test("frame/write"));
  assert(toPattern("*").test("a/b"));
});
