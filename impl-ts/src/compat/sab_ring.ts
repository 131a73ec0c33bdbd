/**
 * A `SABPipe` on Millrace's ring: the link of one end. A burst is written as JSON batches, so that
 * any other Millrace endpoint can be the peer.
 *
 * @module
 */

import { failure } from "../error.ts";
import { layout } from "../memory/layout.ts";
import { recordAt } from "../memory/plan.ts";
import type { Segment } from "../memory/segment.ts";
import { Incoming, Mode, pull } from "../pipe/incoming.ts";
import { arm, Link } from "../pipe/link.ts";
import { Outgoing } from "../pipe/outgoing.ts";
import { Bit } from "../ring/side.ts";
import { attachEndpoint } from "../wait/endpoint.ts";
import { isFinal, stateOf } from "../wait/state.ts";

/** Whether an end of the ring was closed or marked failed by an earlier owner, which is final. */
export function isRingEndGone({ control }: Segment, index: number): boolean {
  const word = Atomics.load(control, recordAt(index) + layout.ENDPOINT_STATE_WORD);
  return isFinal(stateOf(word));
}

/** The link of one end. It waits for room for several messages: a wake costs more than a write. */
export class RingLink extends Link {
  /** @throws {SegmentError} `segment.endpoint` if another object has this end. */
  constructor(segment: Segment, index: number, maxMessageSize: number) {
    super(attachEndpoint(segment, index), 1 - index);
    const channel = segment.channels[0]!;
    if (index === 0) new Outgoing(this, channel, {});
    else new Incoming(this, channel, { maxMessageSize });
  }

  override arm = (asks: number): void => {
    const { outgoing } = this;
    if (outgoing) {
      const half = (outgoing.published - (outgoing.capacity >> 1)) | 0;
      if (((half - outgoing.need) | 0) > 0) outgoing.need = half;
    }
    arm.call(this, asks);
  };

  /** Takes a burst: the values of one message. See `Source`. */
  next(mayLoad: boolean): unknown[] | undefined {
    const incoming = this.incoming!;
    const value = pull(incoming, Mode.VALUE, mayLoad);
    if (value === undefined) {
      if (incoming.bits & Bit.ENDED) throw failure("peer.closed", "read: the stream has ended");
      return undefined;
    }
    // If the message is a batch, `value` is its first element, and the queue holds all of them.
    const rest = incoming.queue.pop();
    return rest && "values" in rest ? rest.values as unknown[] : [value];
  }
}
