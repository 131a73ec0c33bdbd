import { type Memory, Port } from "millrace";
import { WAIT } from "../stage.ts";

/** How the worker is to end: by others while it blocks, or by itself. */
export interface Task {
  memory: Memory;
  mode: "block" | "throw";
}

export default function worker({ memory, mode }: Task): Promise<void> {
  const port = Port.attach<string>(memory);
  port.write(mode, WAIT);
  port.read(WAIT);
  // Outside of everything that is awaited, so that it is the worker's own error.
  setTimeout(() => {
    throw new Error("broken on purpose");
  });
  return new Promise(() => {});
}
