import { Port, Segment } from "millrace";
import { Hub, hubGeometry } from "millrace/hub";
import { assertEquals, WAIT } from "../stage.ts";
import type { Task } from "./main.ts";

const COUNT = 10;

export default function worker({ memory, client }: Task): string {
  if (client === undefined) return serve(Hub.create<number>(2, { memory }));
  Segment.create(memory, hubGeometry(2), WAIT);
  using port = Port.attach<number>(memory, { endpoint: client + 1, ...WAIT });
  let answers = 0;
  for (let n = 0; n < COUNT; n++) {
    port.write(100 * client + n, WAIT);
    assertEquals(port.read(WAIT), 100 * client + n + 1);
    answers++;
  }
  port.end();
  return `client ${client}: ${answers} answers`;
}

/** Answers whichever client has something to say, until all of them have ended. */
function serve(hub: Hub<number>): string {
  const counts = [0, 0];
  for (let port; (port = hub.select(WAIT)) !== undefined;) {
    const n = port.tryRead();
    if (n === undefined) {
      port.close();
    } else {
      port.write(n + 1, WAIT);
      counts[hub.ports.indexOf(port)]!++;
    }
  }
  hub.close();
  assertEquals(counts, [COUNT, COUNT]);
  return `${COUNT} from each`;
}
