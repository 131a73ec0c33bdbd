import { assertEquals } from "@std/assert";
import type { DriverKind } from "./drivers.ts";
import { measure } from "./measure.ts";
import type { Row } from "./results.ts";
import { EFFORTS, loadTasks, type Task } from "./scenarios.ts";

const HELLO = '{"driver":{"name":"x","version":"1","place":"deno","peers":["p","q"]}}';
/** A driver in shell, whose results count what this process has played. */
const SCRIPT = `echo '${HELLO}'; n=0; while read -r line; do
  n=$((n + 1))
  id=$(echo "$line" | sed 's/^{"id":\\([0-9]*\\).*/\\1/')
  echo "{\\"id\\":$id,\\"result\\":{\\"count\\":$n,\\"elapsed_ns\\":1,` +
  `\\"parts\\":{\\"1\\":{\\"count\\":1,\\"elapsed_ns\\":7}}}}"
done`;
const KIND: DriverKind = {
  place: "deno",
  name: "x",
  command: () => ({ name: "x", command: ["sh", "-c", SCRIPT] }),
};

const [some] = await loadTasks(EFFORTS.full) as [Task];
const TASK: Task = { ...some, figure: "time", repetitions: 3, places: ["deno"] };

/** The rows of a task, played by the driver above. */
async function rowsOf(task: Task): Promise<Row[]> {
  const rows: Row[] = [];
  await measure([task], new Set(["deno"]), {
    kinds: [KIND],
    wants: (peer) => task.peers?.includes(peer) ?? true,
    stopped: () => false,
    onSession: () => {},
    onRun: () => {},
    onDriver: () => {},
    onRows: (_task, _place, found) => void rows.push(...found),
  });
  return rows;
}

const countsOf = (rows: readonly Row[]) =>
  rows.map(({ peer, repetitions }) => [peer, ...repetitions.map(({ count }) => count)]);

Deno.test("measure takes turns, and keeps the driver for all repetitions", async () => {
  assertEquals(countsOf(await rowsOf(TASK)), [["p", 1, 3, 5], ["q", 2, 4, 6]]);
});

Deno.test("measure starts a driver for each run of what is fresh", async () => {
  const fresh = { ...TASK, scenario: { ...TASK.scenario, fresh: true } };
  assertEquals(countsOf(await rowsOf(fresh)), [["p", 1, 1, 1], ["q", 1, 1, 1]]);
});

Deno.test("measure has a row for each part that a peer has, and none for the others", async () => {
  const parted = { ...TASK, scenario: { ...TASK.scenario, parts: ["1", "2-10"] } };
  const rows = await rowsOf({ ...parted, peers: ["q"] });
  assertEquals(rows.map(({ scenario, peer, median }) => [scenario, peer, median]), [
    [`${TASK.id}/1`, "q", 7],
  ]);
});
