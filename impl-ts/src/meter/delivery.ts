/**
 * The delivery of messages to listeners of a metered port. The service time of a message ends when
 * its listeners have returned. See `spec/meter.md`.
 *
 * @module
 */

import type { InletGauge } from "./inlet.ts";
import { Delivery } from "../port/delivery.ts";
import type { Standing } from "../port/rota.ts";

/** A delivery that tells the gauge when the listeners have returned. */
export class MeteredDelivery<In> extends Delivery<In> {
  /** Set by the meter. */
  declare gauge: InletGauge;

  override serve(): Standing {
    try {
      return super.serve();
    } finally {
      // Another delivery may run next, so each call ends a lap.
      this.gauge.laps.endLap();
    }
  }
}
