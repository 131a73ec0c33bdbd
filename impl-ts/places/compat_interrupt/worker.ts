import { SABMessagePort, type SABMessagePortInit } from "millrace/sab-message-port";
import { WAIT } from "../stage.ts";

/** Works on what it is told, without ever yielding to its event loop, until the port is closed. */
export default function worker(init: SABMessagePortInit): string[] {
  const port = SABMessagePort.from(init);
  const tasks: string[] = [];
  try {
    while (true) {
      const task = port.read(WAIT.timeout);
      if (task === null) throw new Error("Nothing to do came in time");
      if (task.cmd !== "run") continue;
      tasks.push(task.task);
      for (let i = 0; i < task.iterations; i++) {
        if (i % 500_000 !== 0) continue;
        port.postMessage({ task: task.task, progress: `${(i / task.iterations * 100) | 0}%` });
        if (port.tryRead()?.cmd === "abort") {
          port.postMessage({ task: task.task, aborted: true });
          break; // → back to port.read()
        }
      }
    }
  } catch (error) {
    if (!String(error).includes("disposed")) throw error;
    return tasks;
  }
}
