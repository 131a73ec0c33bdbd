/** The worker of the peer `workerpool`. @module */
import { worker } from "workerpool";
import { handleTask } from "./pool_task.ts";

worker({ handleTask });
