/** The other thread of `worker_test.ts`. Each of its waits has a limit. */

import { MillraceError } from "../error.ts";
import { MailboxReader, MailboxWriter } from "./mailbox.ts";
import { Disposed, Original } from "./fixture.ts";

const WAIT = { timeout: 60_000 };

/** What the worker does with two mailboxes. It reads the first. */
export interface MailboxTask {
  readonly memory: SharedArrayBuffer;
  readonly size: number;
  readonly peer: "blocking" | "async" | "original" | "original async";
  readonly spin: number;
  /**
   * The number of messages that the worker sends back. It closes after it has read one more,
   * because a close drops what the peer has not taken. Infinity: it never closes.
   */
  readonly closeAfter: number;
}

/** The offset of the second mailbox: after the first, at a multiple of 4. */
export function secondOffset(size: number): number {
  return Math.ceil(size / 4) * 4;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<MailboxTask>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = async ({ data }) => {
  try {
    if (data.peer === "blocking") echo(data);
    else if (data.peer === "async") await echoAsync(data);
    else if (data.peer === "original") echoOriginal(data);
    else await echoOriginalAsync(data);
    scope.postMessage("done");
  } catch (error) {
    if (error instanceof Disposed) scope.postMessage("disposed");
    else scope.postMessage(error instanceof MillraceError ? error.code : String(error));
  }
  scope.close();
};

function ends({ memory, size, spin }: MailboxTask) {
  const at = (byteOffset: number) => ({ buffer: memory, byteOffset, byteLength: size });
  return {
    reader: MailboxReader.attach(at(0), { spin }),
    writer: MailboxWriter.attach(at(secondOffset(size)), { spin }),
  };
}

function echo(task: MailboxTask): void {
  const { reader, writer } = ends(task);
  for (let left = task.closeAfter; left > 0; left--) writer.write(reader.read(WAIT), WAIT);
  reader.read(WAIT);
  reader.close();
  writer.close();
}

async function echoAsync(task: MailboxTask): Promise<void> {
  const { reader, writer } = ends(task);
  for (let left = task.closeAfter; left > 0; left--) {
    await writer.writeAsync(await reader.readAsync(WAIT), WAIT);
  }
  await reader.readAsync(WAIT);
  reader.close();
  writer.close();
}

function echoOriginal({ memory, size, closeAfter }: MailboxTask): void {
  const incoming = new Original(memory, 0, size);
  const outgoing = new Original(memory, secondOffset(size), size);
  for (let left = closeAfter; left > 0; left--) {
    outgoing.block(outgoing.write(incoming.block(incoming.read())));
  }
  incoming.block(incoming.read());
  incoming.block(incoming.close());
  outgoing.block(outgoing.close());
}

async function echoOriginalAsync({ memory, size, closeAfter }: MailboxTask): Promise<void> {
  const incoming = new Original(memory, 0, size);
  const outgoing = new Original(memory, secondOffset(size), size);
  for (let left = closeAfter; left > 0; left--) {
    await outgoing.turn(outgoing.write(await incoming.turn(incoming.read())));
  }
  await incoming.turn(incoming.read());
  incoming.block(incoming.close());
  outgoing.block(outgoing.close());
}
