/**
 * The faults that the small port can have, one at a time; and the windows that a fault may widen,
 * so that it is seen every time. The port without a fault must pass with the same windows.
 *
 * @module
 */

import { CALL_FAULTS } from "./faults_call.ts";
import { CBOR_FAULTS } from "./faults_cbor.ts";
import { MANY_FAULTS } from "./faults_many.ts";
import { STREAM_FAULTS } from "./faults_stream.ts";
import { pause } from "./small_memory.ts";

/** Where the port may be held up for a while. */
export type Window = "arm" | "publish" | "fetch" | "sleep";

/** A fault, and the clause of a case that catches it. */
export interface Fault {
  name: string;
  about: string;
  clause: string;
  window?: Window;
  /** Whether it shows in what is read at once: no read need wait for more. */
  isInstant?: true;
}

/** All faults of the port. Each is one deviation, in one place of it. */
export const FAULTS: readonly Fault[] = [
  fault("version_ignored", "attaches to another major version", "segment.check"),
  fault("feature_ignored", "attaches in spite of a feature that it does not know", "segment.check"),
  fault("overlap_ignored", "does not look for areas that overlap", "segment.check"),
  fault("vacancy_ignored", "takes an endpoint that somebody has had", "segment.attach"),
  fault("wakes_left_out", "does not say what it can ring", "segment.attach"),
  fault("state_silent", "changes a state and rings nobody", "segment.state_ring"),
  fault("bits_lost", "attaches without the bits that stand above vacant", "segment.again"),
  fault("features_left", "leaves what its predecessor understood", "segment.features"),
  fault("kinds_strict", "wants two ends of channels that it does not know", "segment.unknown_kind"),
  fault("peers_of_rings", "has no peers but those of rings", "segment.peers"),
  fault("control_size_free", "takes another control area for its own", "segment.same_geometry"),
  fault("again_at_start", "begins at the start when it comes back", "ring.start_again"),
  fault("again_unaligned", "begins between two frames", "ring.start_again"),
  fault("again_by_state", "takes the bits of its state for its generation", "ring.start_again"),
  fault("vacates_anybody", "gives back an endpoint that is in use", "segment.vacate_peer"),
  fault("vacates_of_many", "gives back an endpoint that has other peers", "segment.vacate_peer"),
  fault("vacates_unread", "gives back an endpoint and loses what it wrote", "segment.vacate_read"),
  fault("vacates_cursors_left", "leaves one cursor where it was", "segment.vacate_words"),
  fault("vacates_wants_left", "leaves the requests of the dead", "segment.vacate_words"),
  fault("vacates_words_left", "leaves what the dead could ring", "segment.vacate_words"),
  fault("generation_left", "does not count how often", "segment.vacate_count"),
  fault("generation_wraps", "begins again at generation 0", "segment.vacate_count"),
  fault("vacates_without_bits", "leaves the generation out of the state", "segment.vacate_state"),
  fault("vacates_silently", "gives an endpoint back, and rings nobody", "segment.vacate_state"),
  fault("vacated_final_kept", "takes the next owner for the last", "pipe.vacated"),
  fault("vacated_fault_kept", "reports a fault of the last owner", "pipe.vacated"),
  fault("vacated_end_kept", "has ended for the next owner as well", "pipe.vacated"),
  fault("vacated_parts_kept", "goes on with a message of the last owner", "pipe.vacated"),
  fault("vacated_owed_kept", "cancels what the next owner never saw", "pipe.vacated"),
  fault("vacated_finished_kept", "publishes what it finished for the last owner", "pipe.vacated"),
  fault("vacated_batch_lost", "drops the rest of a batch of the last owner", "pipe.vacated_rest"),
  fault("vacated_claim_kept", "keeps a claim open", "pipe.vacated"),
  fault("claim_skipped", "formats without having claimed the memory", "segment.claim"),
  fault("cursor_trusted", "does not check the peer's cursor", "ring.cursor"),
  fault("cursor_back", "lets the peer's cursor go back", "ring.cursor"),
  fault("wrap_ignored", "compares cursors without regard to 2^32", "ring.cursor"),
  fault("size_trusted", "does not check a frame against what is published", "frame.check"),
  fault("half_ignored", "takes frames above half the capacity", "frame.check"),
  fault("reserved_ignored", "does not look at the reserved byte", "frame.check"),
  fault("checks_swapped", "checks the size before the flags", "frame.check"),
  fault("pad_unread", "does not skip pads", "frame.skip"),
  fault("pad_loose", "takes a pad that ends before the area does", "frame.check"),
  fault("sequence_ignored", "takes a chunk without a first one", "frame.check"),
  fault("total_trusted", "does not add up the parts", "frame.check"),
  fault("extension_trusted", "takes an extension that is larger than its frame", "frame.extension"),
  fault("cancel_extended", "takes a cancel that is extended", "frame.extension"),
  fault("extension_handed_out", "takes an extension for payload", "frame.skip_extension"),
  fault("unknown_ignored", "takes the total that stands for none for a size", "frame.preamble"),
  fault("after_end", "reads on behind `end`", "frame.after_end"),
  fault("fault_silent", "finds a fault and does not mark the peer", "ring.fault"),
  fault("fault_forgotten", "reports a fault once, and goes on", "pipe.fault"),
  fault("head_after_fault", "gives back what stood before a fault", "ring.fault_stop"),
  fault("limit_ignored", "takes messages of any size", "pipe.limit"),
  fault("limit_known_only", "looks only at totals that are known", "pipe.limit_unknown"),
  fault("limit_unknown_late", "looks at the limit when all has come", "pipe.limit_unknown"),
  fault("json_zeros", "takes `01` for JSON", "codec.bad_json"),
  ...CBOR_FAULTS.map(([name, about, clause]) => instant(name, about, clause)),
  fault("calls_taken", "hands out calls that it does not offer", "pipe.unknown_kind"),
  fault("report_twice", "reports the cancel of a message that it has dropped", "pipe.report_once"),
  fault("truncated_silent", "says nothing of a message without an end", "pipe.truncated"),
  fault("drain_skipped", "drops what is published when the peer has closed", "pipe.drain"),
  fault("lent_given_back", "gives back what it has lent out", "pipe.lend"),
  fault("lent_twice", "lends a frame while it has lent one", "pipe.lend_one"),
  fault("read_while_lent", "reads while a frame is lent", "pipe.lend_one"),
  fault("taken_back_nothing", "takes back what it has not lent", "pipe.lend_one"),
  fault("claimed_twice", "claims while a claim is open", "pipe.claim_one"),
  fault("written_while_claimed", "writes while a claim is open", "pipe.claim_one"),
  fault("ended_while_claimed", "ends while a claim is open", "pipe.claim_one"),
  fault("finished_nothing", "finishes what nobody has claimed", "pipe.claim_one"),
  fault("publish_always", "stores `tail` when there is nothing to publish", "pipe.publish_none"),
  fault("publish_answers", "fails to publish what it has dropped", "pipe.publish_none"),
  fault("published_after_all", "publishes what it has dropped", "pipe.publish_none"),
  fault("peer_ignored", "goes on writing to a reader that has closed", "pipe.peer_gone"),
  fault("own_ignored", "does not look at its own state", "pipe.first_answer"),
  fault(
    "bits_judged",
    "takes a peer with a generation for one that has failed",
    "segment.state_low",
  ),
  fault("bits_lost_at_close", "closes without its generation", "segment.state_reason"),
  fault("own_low", "takes any attached state for its own", "segment.own_state"),
  fault("close_of_any", "closes the endpoint that another has taken over", "pipe.close"),
  fault("mark_overwritten", "closes over the mark of a failure", "segment.state_change"),
  fault("parts_dropped", "drops its parts at a time-out", "pipe.keep_parts"),
  fault("room_reserve", "takes the last 16 bytes for a message", "ring.room"),
  fault("pad_missing", "writes a frame around the end of the area", "ring.pad"),
  fault("pad_short", "writes a pad 16 bytes too short", "frame.pad"),
  fault("preamble_missing", "begins a long message without a preamble", "frame.preamble"),
  fault("first_twice", "marks each chunk as the first", "frame.multipart"),
  fault("try_partly", "writes the chunks that fit, and gives up", "pipe.try_write"),
  fault("never_forgotten", "says that there is no room where there never is", "pipe.try_never"),
  fault("cancel_forgotten", "never cancels what it gave up", "pipe.owed"),
  fault("end_waits", "wants room for `end`", "pipe.end_now"),
  fault("end_twice", "writes `end` again", "pipe.first_answer"),
  fault("room_kept", "gives room back when it has read all, asked or not", "ring.release_asked"),
  fault("rings_never", "does not ring who asks for it", "wait.exchange"),
  fault("rings_always", "rings whether or not somebody asks", "wait.exchange"),
  fault("rings_early", "rings before the cursor is where it was wanted", "wait.exchange"),
  fault("wants_unsigned", "compares positions as unsigned numbers", "wait.exchange"),
  fault("wants_left", "rings, and leaves the request", "wait.exchange"),
  fault("wakes_one", "wakes one sleeper of several", "wait.ring"),
  fault("rung_forgotten", "rings, and does not say who", "wait.rung"),
  fault("rung_stored", "wipes out who else has rung", "wait.rung"),
  fault("rung_own", "says that whoever is rung has rung itself", "wait.rung"),
  fault("rung_one_word", "knows of the first 32 endpoints only", "wait.rung"),
  fault("wants_armed", "leaves its request behind at a time-out", "wait.disarm"),
  fault("asks_wrong", "asks for less than a frame", "wait.reader_asks"),
  fault("recheck_forgotten", "does not look again when it has asked", "wait.recheck", "arm"),
  fault("recheck_stateless", "looks again at no state when it has asked", "wait.recheck", "arm"),
  fault("bell_late", "loads the bell when it has asked and looked", "wait.bell_first", "sleep"),
  fault("slice_forgotten", "sleeps until its time is up", "wait.slice"),
  fault("slice_long", "sleeps on while its peer is vacant", "wait.slice"),
  fault("published_early", "stores `tail` before the payload", "ring.publish", "publish"),
  fault("fetched_twice", "loads a size again when it has checked it", "frame.check", "fetch"),
  ...CALL_FAULTS.map(([name, about, clause]) => fault(name, about, clause)),
  ...MANY_FAULTS.map((each) => fault(...each)),
  fault("payload_back", "gives a frame back before it has copied it", "ring.release", "fetch"),
];

/** Those of the side of a stream. */
export const FAULTS_OF_STREAMS: readonly Fault[] = STREAM_FAULTS.map(([name, about, clause]) =>
  fault(name, about, clause)
);

let current: Fault | undefined;
let held: Window | undefined;

/** Milliseconds for which a window is held open: some times what the kit needs to act in it. */
const HELD_MS = 10;

const ALL = [...FAULTS, ...FAULTS_OF_STREAMS];

/** Makes the port faulty, or only slow. */
export function breakPort(name: string | undefined, window: string | undefined): void {
  current = name === undefined ? undefined : ALL.find((each) => each.name === name);
  if (name !== undefined && current === undefined) throw new Error(`there is no fault ${name}`);
  held = (window as Window | undefined) ?? current?.window;
}

/** Whether the port has this fault. */
export function has(name: string): boolean {
  return current?.name === name;
}

/** Takes a while, where this window is held open. */
export function hold(window: Window): void {
  if (held === window) pause(HELD_MS);
}

function instant(name: string, about: string, clause: string): Fault {
  return { ...fault(name, about, clause), isInstant: true };
}

function fault(name: string, about: string, clause: string, window?: Window): Fault {
  return { name, about, clause, ...(window !== undefined && { window }) };
}
