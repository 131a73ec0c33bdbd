/** The worker of the peer `synckit`: it answers. @module */
import { runAsWorker } from "synckit";

runAsWorker((value: unknown) => Promise.resolve(value));
