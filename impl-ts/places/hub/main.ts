/** One thread waits for several workers at once, each of which has a port of its own. */
import { Port } from "millrace";
import { Hub } from "millrace/hub";
import { selectAsync } from "millrace/select";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";

const WORKER_COUNT = 2;

export default async function main(stage: Stage): Promise<void> {
  const hub = Hub.create<string>(WORKER_COUNT);
  const workers = hub.ports.map((port, index) => {
    const worker = stage.start();
    worker.postMessage(port.handoff({ name: `worker ${index}` }));
    return worker;
  });
  const heard: string[] = [];
  for (let port; (port = await hub.selectAsync(WAIT)) !== undefined;) {
    const message = port.tryRead();
    if (message === undefined) {
      assertEquals(port.ended, true);
      port.close();
      continue;
    }
    heard.push(message);
    port.write(`${message} heard`);
  }
  // `selectAsync` came back at once: no port was left. Each worker's own words keep their order.
  assertEquals(heard.length, 2 * WORKER_COUNT);
  for (let index = 0; index < WORKER_COUNT; index++) {
    const name = `worker ${index}`;
    assertEquals(heard.filter((each) => each.startsWith(name)), [`${name} first`, `${name} last`]);
  }
  for (const [index, worker] of workers.entries()) {
    assertEquals(await worker.result, [
      `worker ${index} first heard`,
      `worker ${index} last heard`,
    ]);
  }
  hub.close();
  await assertFails("pipe.closed", () => hub.ports[0]!.readAsync(WAIT));

  // Ports of no hub can be waited for together as well, though not by a call that blocks.
  const ports = [Port.create<number>(), Port.create<number>()];
  Port.attach<number>(ports[1]!.memory).write(7);
  const found = await selectAsync(ports, WAIT);
  assertEquals([found === ports[1], found?.tryRead()], [true, 7]);
  for (const port of ports) port.close();
}
