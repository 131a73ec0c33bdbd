/**
 * The plays by the name of their scenario.
 *
 * @module
 */
import type { Scenario } from "../contract.ts";
import type { PlayRole } from "./peer.ts";
import { playCallMessages } from "./play_calls.ts";
import { playCold, playColdStream } from "./play_cold.ts";
import { playDropbox } from "./play_dropbox.ts";
import { playEcho } from "./play_echo.ts";
import { playIdle } from "./play_idle.ts";
import { playLoad } from "./play_load.ts";
import { playStream } from "./play_stream.ts";

/** What plays a scenario. */
export function playOf({ name, fresh }: Scenario): PlayRole {
  switch (name) {
    case "cold":
      return playCold;
    case "echo":
      return playEcho;
    case "stream":
    case "burst":
    case "large":
    case "memory":
      return fresh ? playColdStream : playStream;
    case "load":
      return playLoad;
    case "values":
      return playEcho;
    case "calls":
      return playCallMessages;
    case "dropbox":
      return playDropbox;
    case "idle":
      return playIdle;
  }
  throw new Error(`Cannot play ${name}: there is no such scenario`);
}
