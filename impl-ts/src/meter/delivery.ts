/**
 * The delivery of messages to listeners of a metered port. The service time of a message ends when
 * its listeners have returned. See `spec/meter.md`.
 *
 * @module
 */

import { PortDelivery } from "../port/delivery.ts";
import type { PortEvent } from "../port/events.ts";
import type { IncomingGauge } from "./incoming.ts";

/** A delivery that tells the gauge when the listeners have returned. */
export class MeteredDelivery extends PortDelivery {
  /** Set by the meter. */
  declare gauge: IncomingGauge;

  override dispatch(event: PortEvent): void {
    try {
      super.dispatch(event);
    } finally {
      this.gauge.laps.endLap();
    }
  }
}
