/**
 * The small port: giving the peer's endpoint back, whose owner is dead.
 *
 * @module
 */

import { has } from "./faults.ts";
import type { Endpoint } from "./small_endpoint.ts";
import { PortError, Refused } from "./small_memory.ts";
import type { Reader } from "./small_reader.ts";
import { recordAt } from "./small_segment.ts";
import type { Writer } from "./small_writer.ts";

const [CLOSED, FAILED] = [2, 3];
const [STATE, WAKES, AGENT, GENERATION, FEATURES] = [4, 8, 12, 16, 20];
const LOW = 255;
const GENERATION_MAX = 2 ** 32 - 1;

/** Vacates the peer, or refuses where that may not be done now. */
export function vacate(endpoint: Endpoint, reader?: Reader, writer?: Writer): void {
  const { segment, peer } = endpoint;
  const { memory } = segment;
  const own = endpoint.closed ? new PortError("pipe.closed") : endpoint.ownState();
  if (own !== undefined) throw own; // [segment.vacate_peer]
  const record = recordAt(peer);
  const final = memory.load(record + STATE);
  const isFinal = [CLOSED, FAILED].includes(final & LOW) || has("vacates_anybody");
  if (!isFinal) throw new Refused("the peer is there");
  for (const channel of segment.channels) {
    if (channel.writer !== peer && channel.reader !== peer) continue;
    const isOurs = channel === reader?.ring || channel === writer?.ring;
    if (!isOurs && !has("vacates_of_many")) throw new Refused("the peer has other channels");
  }
  const generation = memory.load(record + GENERATION);
  if (generation === GENERATION_MAX && !has("generation_wraps")) throw new Refused("too often");
  if (reader?.isDrained() === false && !has("vacates_unread")) throw new Refused("unread");
  reader?.restart();
  writer?.restart();
  if (!has("vacates_words_left")) {
    for (const word of [WAKES, AGENT, FEATURES]) memory.store(record + word, 0);
  }
  const next = has("generation_left") ? generation : generation + 1 >>> 0;
  memory.store(record + GENERATION, next);
  const vacant = has("vacates_without_bits") ? 0 : (next << 8) >>> 0;
  memory.change(record + STATE, final, vacant); // [segment.vacate_state]
  if (!has("vacated_final_kept")) endpoint.forgetFinal();
  if (!has("vacates_silently")) segment.ringAround(peer);
}
