/** The worker of the peers `millrace-pool`. @module */
import { work } from "../../impl-ts/src/worker_pool.ts";
import { handleTask } from "./pool_task.ts";

export default work(handleTask);
