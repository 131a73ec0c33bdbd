/** A worker blocks for two others at once: it has the hub, and they have its clients' ends. */
import { type Memory, segmentSize } from "millrace";
import { hubGeometry } from "millrace/hub";
import { assertEquals, type Stage } from "../stage.ts";

/** Which part a worker has: the hub, or the client with this number. */
export interface Task {
  memory: Memory;
  client?: number;
}

export default async function main(stage: Stage): Promise<void> {
  // Blank memory, which whoever comes first may format.
  const memory = new SharedArrayBuffer(segmentSize(hubGeometry(2)));
  const tasks: Task[] = [{ memory }, { memory, client: 0 }, { memory, client: 1 }];
  const workers = tasks.map((task) => {
    const worker = stage.start();
    worker.postMessage(task);
    return worker;
  });
  const results = await Promise.all(workers.map(({ result }) => result));
  assertEquals(results, ["10 from each", "client 0: 10 answers", "client 1: 10 answers"]);
}
