/** The worker of the peers `millrace-pool`. @module */
import { work } from "../../impl-ts/src/pool/pool.ts";
import { handleTask } from "./pool_task.ts";

export default work(handleTask);
