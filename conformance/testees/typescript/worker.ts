/**
 * The TypeScript implementation in a worker of any JavaScript host, on memory that is handed over.
 *
 * @module
 */

import { serveWorker } from "../worker_server.ts";
import { typescript } from "./adapter.ts";

serveWorker(typescript);
