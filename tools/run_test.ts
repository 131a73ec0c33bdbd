import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { run } from "./run.ts";

const OPTIONS = { cwd: `${import.meta.dirname}/..`, timeoutMs: 60_000, echo: false };

/**
 * Asserts that the process ends, soon: a signal is sent before it has taken effect. One that has
 * ended may still wait to be collected.
 */
async function assertEnds(pid: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (performance.now() < deadline) {
    const state = Deno.build.os === "linux" ? await stateByProc(pid) : await stateByPs(pid);
    if (state === "" || state.startsWith("Z")) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`process ${pid} is still running`);
}

/** A small Linux has no `ps`. */
async function stateByProc(pid: number): Promise<string> {
  try {
    const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
    return stat.slice(stat.lastIndexOf(")") + 2);
  } catch {
    // No such file; or, where it ended between opening and reading, no such process.
    return "";
  }
}

async function stateByPs(pid: number): Promise<string> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "stat=", "-p", `${pid}`] })
    .output();
  return new TextDecoder().decode(stdout).trim();
}

/** The process id that a shell printed for a child that it left running. */
function leftover(output: string): number {
  const pid = Number(/^left (\d+)$/m.exec(output)?.[1]);
  assert(pid > 0, `no process id in: ${output}`);
  return pid;
}

const LEAVE_ONE = "sleep 300 & echo left $!";

Deno.test("run: hands back the exit code and both streams", async () => {
  const outcome = await run(["sh", "-c", "echo out; echo err >&2; exit 7"], OPTIONS);
  assertEquals([outcome.code, outcome.timedOut], [7, false]);
  assertStringIncludes(outcome.output, "out\n");
  assertStringIncludes(outcome.output, "err\n");
});

Deno.test("run: strips colours, and keeps the end of a flood", async () => {
  const script = "yes 0123456789 | head -c 1100000; printf '\\033[32mlast\\033[0m\\n'";
  const { output } = await run(["sh", "-c", script], OPTIONS);
  assert(output.endsWith("\nlast\n"));
  assert(output.length <= 1 << 18);
});

Deno.test("run: a command that does not exist is told, not thrown", async () => {
  const outcome = await run(["no-such-command"], OPTIONS);
  assertEquals(outcome.code, 127);
  assertStringIncludes(outcome.output, "Cannot start no-such-command");
});

Deno.test({
  name: "run: tells what the processors did for a command and its children, and for no other",
  ignore: Deno.build.os !== "linux",
  async fn() {
    // A shell counts to a large number in its child; the next command does nothing.
    const work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    const busy = await run(["sh", "-c", `sh -c '${work}'; true`], OPTIONS);
    const idle = await run(["sleep", "0.3"], OPTIONS);
    assert(busy.processorSeconds! > 0.05, `${busy.processorSeconds}`);
    assert(idle.processorSeconds! < 0.05, `${idle.processorSeconds}`);
    assert(idle.seconds >= 0.3);
  },
});

Deno.test("run: a timeout ends the whole group", async () => {
  const outcome = await run(["sh", "-c", `${LEAVE_ONE}; sleep 300`], {
    ...OPTIONS,
    timeoutMs: 1_000,
  });
  assert(outcome.timedOut);
  assert(outcome.seconds < 30);
  await assertEnds(leftover(outcome.output));
});

Deno.test("run: a timeout ends a group that ignores polite signals", async () => {
  const script = `trap '' TERM; ${LEAVE_ONE}; while :; do sleep 1; done`;
  const outcome = await run(["sh", "-c", script], { ...OPTIONS, timeoutMs: 1_000 });
  assert(outcome.timedOut);
  await assertEnds(leftover(outcome.output));
});

Deno.test("run: what a command leaves behind does not hold the run up", async () => {
  const outcome = await run(["sh", "-c", LEAVE_ONE], OPTIONS);
  assertEquals([outcome.code, outcome.timedOut], [0, false]);
  assert(outcome.seconds < 30);
  await assertEnds(leftover(outcome.output));
});

Deno.test("endOnSignals: Ctrl-C ends the running command, tidies up and exits 130", async () => {
  const options = JSON.stringify({ ...OPTIONS, echo: true });
  const script = `
    import { endOnSignals, run } from "./tools/run.ts";
    endOnSignals(async () => console.log("tidied up"));
    await run(["sh", "-c", "${LEAVE_ONE}; sleep 300"], ${options});
    Deno.exit(1); // An interrupted run must not get here.
  `;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--ext=ts", script],
    cwd: OPTIONS.cwd,
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const pid = leftover((await reader.read()).value ?? "");
  child.kill("SIGINT");
  assertEquals((await child.status).code, 130);
  assertEquals((await reader.read()).value, "tidied up\n");
  await reader.cancel();
  await assertEnds(pid);
});
