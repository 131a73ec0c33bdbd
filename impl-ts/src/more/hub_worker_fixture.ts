/** The other threads of `hub_worker_test.ts`. Every wait in them is bounded. */

import { MillraceError } from "../error.ts";
import { random } from "../testing/fixture.ts";
import { Hub } from "./hub.ts";
import { echoAll, messages, WAIT } from "./hub_fixture.ts";
import { Port } from "../port/port.ts";

/** What a worker is asked to do: to be client `endpoint`, or the hub if that is 0. */
export interface HubTask {
  memory: SharedArrayBuffer;
  endpoint: number;
  count: number;
}

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<HubTask>) => void;
  postMessage(value: unknown): void;
  close(): void;
};

scope.onmessage = ({ data }) => {
  try {
    scope.postMessage(data.endpoint === 0 ? serve(data) : ask(data));
  } catch (error) {
    scope.postMessage(error instanceof MillraceError ? error.code : String(error));
  }
  scope.close();
};

function serve({ memory }: HubTask): number {
  using hub = Hub.create(2, { memory, capacity: 1024 });
  return echoAll(hub);
}

/** Sends bursts of messages, and reads the answers after each. */
function ask({ memory, endpoint, count }: HubTask): string {
  using port = Port.attach(memory, { endpoint });
  const all = messages(endpoint, count);
  const next = random(endpoint + 1000);
  let wrong = 0;
  for (let from = 0; from < count;) {
    const burst = all.slice(from, from += 1 + next() % 6);
    for (const message of burst) port.write(message, WAIT);
    for (const message of burst) {
      if (JSON.stringify(port.read(WAIT)) !== JSON.stringify(message)) wrong++;
    }
  }
  port.end();
  if (port.read(WAIT) !== undefined || !port.ended) wrong++;
  return `${wrong} wrong`;
}
