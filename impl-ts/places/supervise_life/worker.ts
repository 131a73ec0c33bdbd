import { type Memory, Port } from "millrace";
import { holdLife } from "millrace/supervise";
import { WAIT } from "../stage.ts";

/** What the worker gets: the memory of its port, and the name of its life. */
export interface Life {
  memory: Memory;
  lock: string;
}

export default async function worker({ memory, lock }: Life): Promise<void> {
  const hasLocks = await holdLife(lock);
  const port = Port.attach<boolean>(memory);
  port.write(hasLocks, WAIT);
  await new Promise(() => {}); // idle, and not blocked: a browser ends it at once
}
