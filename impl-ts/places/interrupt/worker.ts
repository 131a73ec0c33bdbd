import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";

/** What the worker is told. */
export interface Command {
  run?: string;
  rounds?: number | null;
  abort?: string;
}

/** What it answers. */
export interface Note {
  started?: string;
  aborted?: string;
  finished?: string;
}

export default function worker(memory: Memory): void {
  const port = Port.attach<Command, Note>(memory);
  for (let command; (command = port.read(WAIT)) !== undefined;) {
    if (command.run !== undefined) work(port, command.run, command.rounds ?? undefined);
  }
  port.end();
  port.close();
}

/** Works for a number of rounds, or until it is told to stop. */
function work(port: Port<Command, Note>, name: string, rounds = Infinity): void {
  const deadline = performance.now() + WAIT.timeout;
  port.write({ started: name }, WAIT);
  for (let round = 0; round < rounds; round++) {
    if (port.tryRead()?.abort === name) return port.write({ aborted: name }, WAIT);
    if (performance.now() > deadline) throw new Error(`Nobody has stopped ${name}`);
  }
  port.write({ finished: name }, WAIT);
}
