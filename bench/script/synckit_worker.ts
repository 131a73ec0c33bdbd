/** The worker of the peer `synckit`: it answers. @module */
import { runAsWorker } from "synckit";

runAsWorker((value: unknown) => Promise.resolve(value));

// See `peers/synckit.ts`, which is not for this thread.
const channel = new BroadcastChannel("synckit-started");
channel.postMessage(undefined);
channel.close();
