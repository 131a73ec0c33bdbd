/**
 * The worker that handles: it works for so long on each message as the page wishes. Its meter knows
 * how long each has waited, and how long it took.
 *
 * @module
 */
import { Port } from "millrace";
import { meter } from "millrace/meter";
import { SharedProperties } from "millrace/property";
import { REPORT_MS } from "./shared.js";

self.onmessage = ({ data }) => {
  const knobs = SharedProperties.attach(data.memory, { endpoint: 2 });
  const port = Port.from(data.handoff);
  const metered = meter(port);
  const service = knobs.reader("service");
  let micros = service.get();
  let reportDue = performance.now() + REPORT_MS;
  for (;;) {
    const message = port.read({ timeout: REPORT_MS });
    if (service.version !== service.seen) micros = service.get();
    if (message !== undefined) work(micros);
    if (performance.now() < reportDue) continue;
    self.postMessage({ snapshot: metered.snapshot() });
    metered.reset();
    reportDue = performance.now() + REPORT_MS;
  }
};

/** Takes so long, and the processor all the while. */
function work(micros) {
  const end = performance.now() + micros / 1000;
  while (performance.now() < end);
}
