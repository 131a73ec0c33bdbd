/**
 * Worker B: answers what worker A sends. It blocks in the ring while Millrace is measured, and goes
 * back to its event loop while the `MessagePort` is.
 *
 * @module
 */
import { Port, statsOf } from "millrace";
import { holdLife } from "millrace/supervise";

self.onmessage = async ({ data }) => {
  await holdLife(data.lock); // before it attaches: by this the page finds any end of it
  const port = Port.from(data);
  const { rival } = data;
  self.postMessage("here");
  let handle = answers.trips(port);
  for (let message; (message = port.read()) !== undefined;) {
    if (message instanceof Uint8Array) {
      handle(message);
    } else if (message.task === "rival") {
      await serveRival(rival);
    } else if (message.task === "report") {
      port.write({ ...handle.report?.(), stats: statsOf(port) });
    } else {
      handle = answers[message.task](port);
    }
  }
};

/** What becomes of each message, by the task. */
const answers = {
  /** It goes back. */
  trips: (port) => (message) => port.write(message),

  /** It is counted. */
  flow() {
    let count = 0;
    const handle = () => count++;
    handle.report = () => ({ count });
    return handle;
  },

  /** It is numbered, and worked on for longer than it took to write it. */
  flood() {
    let [arrived, disordered, sum] = [0, 0, 0];
    const handle = (message) => {
      const number = new Uint32Array(message.buffer, message.byteOffset, 1)[0];
      if (number !== arrived) disordered++;
      arrived++;
      for (let i = 0; i < 1000; i++) sum = Math.imul(sum, 31) + message[i % message.length] | 0;
    };
    handle.report = () => ({ arrived, disordered, sum });
    return handle;
  },
};

/** Does the same with a `MessagePort`, by events, until worker A has measured enough. */
function serveRival(rival) {
  let isFlow = false;
  let count = 0;
  return new Promise((resolve) => {
    rival.onmessage = ({ data }) => {
      if (data instanceof Uint8Array) {
        if (isFlow) count++;
        else rival.postMessage(data);
      } else if (data.task === "report") {
        rival.postMessage({ count });
      } else if (data.task === "end") {
        resolve();
      } else {
        isFlow = data.task === "flow";
        count = 0;
      }
    };
  });
}
