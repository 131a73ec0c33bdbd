/** The other thread of `sab_worker_test.ts`. Each of its waits has a limit. */

import { MWChannel, SABMessagePort, SABPipe, type WireName } from "./sab_message_port.ts";

const WAIT_MS = 60_000;

/** What the worker does. Its message may also be one of `postInit`. */
export interface Task {
  readonly task:
    | "echo"
    | "echo async"
    | "echo events"
    | "channel"
    | "pipe"
    | "silent"
    | "leave"
    | "read briefly";
  /** For `pipe`. */
  readonly buffer: SharedArrayBuffer;
  readonly wire: WireName;
}

/** The result of each read of `read briefly`, and the milliseconds that it took. */
export type Outcome = [result: unknown, ms: number][];

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<Task>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = async ({ data }) => {
  try {
    scope.postMessage("started");
    if (data.task === "echo") echo(data);
    else if (data.task === "echo async") await echoAsync(data);
    else if (data.task === "echo events") await echoEvents(data);
    else if (data.task === "channel") await useChannel(data);
    else if (data.task === "pipe") readPipe(data);
    else if (data.task === "leave") await leave(data);
    else if (data.task === "read briefly") scope.postMessage(await readBriefly(data));
    else blockSilently(data);
    scope.postMessage("done");
  } catch (error) {
    scope.postMessage((error as Error).message);
  }
  scope.close();
};

/** Never returns to the event loop; what it posts is sent nevertheless. */
function echo(data: Task): void {
  const port = SABMessagePort.from(data);
  for (;;) {
    const message = port.read(WAIT_MS);
    if (message === "stop") break;
    port.postMessage(message);
  }
  port.postMessage("stopped");
  port.read(WAIT_MS); // until the other side closes
}

/** Ends the worker as Deno does: at once, without running its microtasks. */
async function leave(data: Task): Promise<void> {
  const port = SABMessagePort.from(data);
  port.postMessage("last");
  await port.postMessage("words");
  scope.close();
}

async function echoAsync(data: Task): Promise<void> {
  const port = SABMessagePort.from(data);
  for (;;) {
    const some = await port.asyncRead(WAIT_MS, 100);
    for (let message; (message = some.pop()) !== undefined;) {
      if (message === "stop") await port.postMessage("stopped");
      else port.postMessage(message);
    }
  }
}

function echoEvents(data: Task): Promise<void> {
  const port = SABMessagePort.from(data);
  return new Promise((resolve) =>
    port.onmessage = ({ data: message }) => {
      port.postMessage(message === "stop" ? "stopped" : message);
      if (message !== "stop") return;
      port.onmessage = null;
      port.asyncRead(WAIT_MS).catch(() => resolve()); // until the other side closes
    }
  );
}

async function useChannel(data: Task): Promise<void> {
  const channel = MWChannel.from(data);
  for (let n = 0; n < 3; n++) channel.postMessage({ read: channel.read(WAIT_MS) });
  channel.setMode("nonblocking");
  await new Promise<void>((resolve) => {
    channel.onmessage = ({ data: message }) => {
      channel.postMessage({ event: message });
      if (message === "last") resolve();
    };
    channel.postMessage("nonblocking");
  });
  channel.setMode("blocking");
  channel.postMessage("blocking");
  channel.postMessage({ read: channel.read(WAIT_MS) });
  channel.read(WAIT_MS); // until the other side closes
}

/** Reads numbers in order; every second read returns an array. */
function readPipe({ buffer, wire }: Task): void {
  const pipe = new SABPipe("r", buffer, 0, null, null, { wire });
  for (let next = 0;;) {
    const some = next % 2 === 0 ? [pipe.read(WAIT_MS)] : pipe.read(WAIT_MS, true, 7);
    for (const { n } of some.reverse()) if (n !== next++) throw new Error(`${n} for ${next - 1}`);
  }
}

async function readBriefly(data: Task): Promise<Outcome> {
  const port = SABMessagePort.from(data);
  const reads = [
    () => port.read(20),
    () => port.read(20, true, 5),
    () => port.asyncRead(20),
    () => port.asyncRead(20, 5),
    () => port.read(0),
    () => port.asyncRead(0),
  ];
  const outcome: Outcome = [];
  for (const read of reads) {
    const start = performance.now();
    outcome.push([await read(), performance.now() - start]);
  }
  return outcome;
}

function blockSilently({ buffer, wire }: Task): void {
  new SABPipe("r", buffer, 0, null, null, { wire }).read(WAIT_MS);
}
