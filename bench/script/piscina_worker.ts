/** The worker of the peers `piscina`. @module */
export { handleTask as default } from "./pool_task.ts";
