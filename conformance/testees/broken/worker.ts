/**
 * The small port in a worker; which fault it has comes first, as `{ setup: { fault, window } }`.
 *
 * @module
 */

import { serveWorker } from "../worker_server.ts";
import { small } from "./adapter.ts";
import { breakPort } from "./faults.ts";

serveWorker(small, (setup) => {
  const { fault, window } = setup as { fault?: string; window?: string };
  breakPort(fault, window);
});
