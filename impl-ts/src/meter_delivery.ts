/**
 * The delivery of messages to listeners where it is metered: its service ends when they return. See
 * `spec/meter.md`.
 *
 * @module
 */

import type { InletGauge } from "./meter_inlet.ts";
import { Delivery } from "./port_delivery.ts";
import type { Standing } from "./port_rota.ts";

/** A delivery that tells a gauge when listeners are done. */
export class MeteredDelivery<In> extends Delivery<In> {
  /** Set by the meter. */
  declare gauge: InletGauge;

  override serve(): Standing {
    try {
      return super.serve();
    } finally {
      // Others may be served next, so that each of these is a lap.
      this.gauge.laps.end();
    }
  }
}
