/**
 * The worker that sends: as many messages a second as the page wishes, or as many as there is room
 * for. Its meter makes each message say when it was written.
 *
 * @module
 */
import { Port } from "millrace";
import { meter } from "millrace/meter";
import { SharedProperties } from "millrace/property";
import { CAPACITY, REPORT_MS } from "./shared.js";

self.onmessage = ({ data }) => {
  const knobs = SharedProperties.attach(data.memory, { endpoint: 1 });
  const port = Port.create({ capacity: [CAPACITY, 256] });
  self.postMessage({ handoff: port.handoff() });
  const metered = meter(port);
  const text = "a message of some length, as programs send them ".repeat(2);
  let id = 0;
  let rate = knobs.get("rate");
  let due = performance.now();
  let reportDue = due + REPORT_MS;
  for (;;) {
    port.write({ id: id++, text }); // waits where there is no room
    const now = performance.now();
    if (now >= reportDue) {
      self.postMessage({ snapshot: metered.snapshot() });
      metered.reset();
      reportDue = now + REPORT_MS;
    }
    due += 1000 / rate;
    // What could not be sent in time is not sent later all at once.
    due = Math.max(due, now - 20);
    if (due - now >= 1) knobs.wait(["rate"], { timeout: due - now });
    if (knobs.reader("rate").version !== knobs.reader("rate").seen) {
      rate = knobs.get("rate");
      due = now;
    }
  }
};
