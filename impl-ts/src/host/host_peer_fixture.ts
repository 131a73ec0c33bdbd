// The other process of the tests that need one: the program that `Peer` starts.

import process from "node:process";
import { type Port, portGeometry } from "../mod.ts";
import { waitForPeer } from "../more/peer.ts";
import { SegmentFile } from "./mod.ts";
import type { Task } from "./host_fixture.ts";

const GEOMETRY = portGeometry({ capacity: 1024 });
const WAIT = { timeout: 10_000 };

function die(): never {
  process.kill(process.pid, "SIGKILL");
  for (;;);
}

async function main({ path, creates, mode, spin }: Task): Promise<void> {
  const options = { endpoint: creates ? 0 : 1, spin };
  const file = creates === "sealed"
    ? SegmentFile.createSealed(GEOMETRY, options)
    : creates
    ? SegmentFile.create(path, GEOMETRY, options)
    : SegmentFile.open(path, options);
  const port = file.port();
  await new Promise<void>((resolve) => process.stdout.write(file.path, () => resolve()));
  await work(port, mode);
  // In mode `unref`, the port has not been closed when the process ends.
  if (mode !== "unref") file.close();
}

async function work(port: Port, mode: Task["mode"]): Promise<void> {
  switch (mode) {
    case "echo":
      for (let value; (value = port.read(WAIT)) !== undefined;) {
        if (value === "die") die();
        port.write(value, WAIT);
      }
      break;
    case "echoAsync":
      for await (const value of port) {
        if (value === "die") die();
        await port.writeAsync(value, WAIT);
      }
      break;
    case "idle":
      for (;;) waitForPeer(port, WAIT), port.read(WAIT);
    case "unref":
      port.onmessage = () => {};
      port.unref();
      return await new Promise((resolve) => setTimeout(resolve, 250)); // a few slices
  }
  if (!port.ended) throw new Error("the stream did not end");
  await port.endAsync(WAIT);
}

await main(JSON.parse(process.argv[2]!));
