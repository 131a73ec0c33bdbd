/** The other thread of `tree_test.ts`: serves trees while its event loop turns. */

import { serveTrees } from "./tree_fixture.ts";
import { Port, type PortHandoff } from "../mod.ts";

const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<PortHandoff>) => void;
  close(): void;
};

scope.onmessage = ({ data }) => {
  const port = Port.from<unknown>(data);
  serveTrees(port);
  port.closed.then(() => scope.close());
};
