// The kit on a port by somebody else: what it passes, what it declines, and what a fault costs.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";

const ROOT = `${import.meta.dirname}/../../..`;
const PORT = "conformance/examples/python";
const FILES = ["layout.py", "segment.py", "pipe.py", "mailbox.py", "testee.py"];
/** Only a hang takes so long. */
const HANG_MS = 60_000;

/** What the tests look at of conformance/report.schema.json. */
interface Report {
  testees: { lacks: string[]; nouns: string[] }[];
  cases: { id: string; level: string; status: string; clauses: string[]; why: string[] }[];
}

async function conformance(
  root: string,
  options: string[],
): Promise<{ code: number; output: string; report: Report }> {
  const json = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "conformance/main.ts"],
        ...["--testee", `python3 -B '${root}/${PORT}/testee.py'`, "--carrier", "bytes"],
        ...["--json", json, ...options],
      ],
      cwd: ROOT,
      env: { NO_COLOR: "1" },
      signal: AbortSignal.timeout(HANG_MS),
    }).output();
    const text = new TextDecoder();
    const output = text.decode(stdout);
    assert(code === 0 || code === 1, `exit code ${code}\n${output}${text.decode(stderr)}`);
    return { code, output, report: JSON.parse(await Deno.readTextFile(json)) };
  } finally {
    await Deno.remove(json);
  }
}

Deno.test("python: every case passes, or is declined for what the port says it lacks", async () => {
  // Both halves at once: each spends most of its time waiting for a reply.
  const halves = await Promise.all([
    conformance(ROOT, ["--level", "static"]),
    conformance(ROOT, ["--level", "scripted", "--level", "mailbox"]),
  ]);
  const passed: Record<string, number> = { static: 0, scripted: 0, mailbox: 0 };
  for (const { code, output, report } of halves) {
    assertEquals(code, 0, output);
    assertEquals(report.testees.length, 1);
    const { nouns, lacks } = report.testees[0]!;
    for (const noun of ["port", "call", "property", "fanout"]) assert(!nouns.includes(noun));
    const reasons = [
      ...lacks.map((name) => `lacks ${name}`),
      "does not offer port",
      "does not offer call",
      "does not offer property",
      "does not offer fanout",
      "has no role port",
    ];
    for (const { id, level, status, why } of report.cases) {
      if (status === "pass") {
        passed[level] = (passed[level] ?? 0) + 1;
        continue;
      }
      assertEquals(status, "declined", id);
      const listed = why.length > 0 && why.every((reason) => reasons.includes(reason));
      assert(listed, `${id}: declined for ${why}`);
    }
  }
  // A kit that found no cases would have nothing to complain of either.
  assert(
    passed.static! > 500 && passed.scripted! > 10 && passed.mailbox! > 60,
    JSON.stringify(passed),
  );
});

Deno.test("python: a pad that is 16 bytes too long fails, with the clause", async () => {
  const root = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${root}/spec`);
    await Deno.mkdir(`${root}/${PORT}`, { recursive: true });
    await Deno.copyFile(`${ROOT}/spec/layout.json`, `${root}/spec/layout.json`);
    for (const file of FILES) {
      const text = await Deno.readTextFile(`${ROOT}/${PORT}/${file}`);
      const faulty = text.replace("self.put(pad - HEADER.size, ", "self.put(pad, ");
      assertEquals(faulty !== text, file === "pipe.py", file);
      await Deno.writeTextFile(`${root}/${PORT}/${file}`, faulty);
    }
    const cases = ["frame/write_pad", "frame/write_whole", "ring/example_wrap"];
    const { code, output, report } = await conformance(root, [
      ...["--level", "static"],
      ...cases.flatMap((id) => ["--case", id]),
    ]);
    assertEquals(code, 1, output);
    const failed = report.cases.filter(({ status }) => status === "fail");
    assertEquals(failed.map(({ id }) => id).sort(), ["frame/write_pad", "ring/example_wrap"]);
    for (const { id, clauses } of failed) assert(clauses.includes("frame.pad"), id);
    assertStringIncludes(output, "[frame.pad] A writer MUST give a pad a size such that");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
