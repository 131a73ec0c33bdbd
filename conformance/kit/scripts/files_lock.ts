/**
 * Scripts about the lock that says that the owner of an endpoint lives: who has it, from when until
 * when, and what comes of its end.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, VACANT } from "../../reference/builder.ts";
import { failed } from "../../reference/encode.ts";
import { limitOf } from "../../reference/layout.ts";
import type { Read } from "../../static/driver.ts";
import { controlWord } from "../peer.ts";
import { demand, expect, type FilePlace, type FileScript, image } from "./files.ts";
import type { Opened, PeerFile } from "./files.ts";
import { rest, settles } from "./watch.ts";

const LOCK = "[segment.file_lock]";
const DEAD = "[segment.file_dead]";
const LOST = failed("peer.lost");
/** How long a call may wait: far longer than anything that is to end it. */
const LONG_MS = 5_000;
/** A death is found at the end of a slice that begins after it, or that was under way. */
const FOUND_MS = 2 * limitOf("wait_slice_ms") + 100;
const TRIES = 3;
/** Times that an endpoint is seen sharply when it is taken, and when it is given up. */
const SHARP = 6;

export const FILE_LOCK_SCRIPTS: FileScript[] = [
  {
    id: "scripted/file_lock",
    about: "The record is locked before its state is attached, and no longer than it is open.",
    clauses: ["segment.file_lock"],
    play: locked,
  },
  {
    id: "scripted/file_taken",
    about: "An endpoint is vacant, and its record is locked: it is somebody's.",
    clauses: ["segment.file_lock", "segment.file_open"],
    play: taken,
  },
  {
    id: "scripted/file_dead",
    about: "A peer that has attached and whose record nobody locks is marked as lost.",
    clauses: ["segment.file_dead", "wait.liveness", "segment.state_reason"],
    play: dead,
  },
  {
    id: "scripted/file_dies",
    about: "A peer dies while a reader or a writer waits: found within a slice.",
    clauses: ["segment.file_dead", "wait.liveness", "wait.slice", "wait.slice_short"],
    play: dies,
  },
  {
    id: "scripted/file_lives",
    about: "A peer that lives, is vacant, or has closed is not marked.",
    clauses: ["segment.file_dead", "wait.liveness"],
    play: lives,
  },
  {
    id: "scripted/file_vacate_locked",
    about:
      "A peer that has closed, or was marked, is not vacated while its record is locked; once " +
      "that is free, it is.",
    clauses: ["segment.vacate_dead"],
    mayDecline: ["vacating"],
    play: vacateLocked,
  },
];

async function locked(place: FilePlace): Promise<string | void> {
  for (const kind of ["attach", "create"] as const) {
    const isSeen = await place.often(SHARP, (name) => lockedOnce(place, kind, `${kind} ${name}`));
    if (!isSeen) return "the kit was never there when an endpoint was taken and given up";
  }
}

/** Takes an endpoint and gives it up; says what was seen last, if both were seen sharply. */
async function lockedOnce(place: FilePlace, kind: "attach" | "create", name: string) {
  const file = place.putLive(name);
  const [path, endpoint] = [file.path, 1];
  let end: Opened | undefined;
  const first = await place.watching({ look: "attached", path, endpoint }, async () => {
    end = await place.open(kind, endpoint, { path }).ready(LOCK);
  });
  const isLate = first?.isLocked === false;
  demand(!isLate, `${LOCK} ${kind}: the state was attached before the record was locked`);
  demand(file.isRecordLocked(1), `${LOCK} ${kind}: the record is not locked`);
  demand(file.state(1) === ATTACHED, `${LOCK} ${kind}: the state is not attached`);
  const last = await place.watching({ look: "unlocked", path, endpoint }, () => end!.drop());
  const isEarly = last?.isAttached === true;
  demand(!isEarly, `${LOCK} ${kind}: the record was unlocked before the state was closed`);
  const isKept = file.isRecordLocked(1);
  demand(!isKept, `${LOCK} ${kind}: the record is still locked, and all is closed`);
  file.stateIs("[pipe.close]", 1, CLOSED);
  return first?.isSharp ? last : undefined;
}

async function taken(place: FilePlace): Promise<void> {
  const file = place.putLive();
  file.lockRecord(1);
  for (const kind of ["attach", "create"] as const) {
    await place.expect("segment.endpoint", `${LOCK} its record is locked`, kind, 1);
    file.stateIs(LOCK, 1, VACANT);
    demand(file.hasName(), `${LOCK} ${kind}: the file was removed`);
    demand(!file.isHeaderLocked(), `[segment.file_open] ${kind}: it has kept the header`);
  }
  file.unlockRecord(1);
  await place.expect("ok", `${LOCK} its record is free again`, "attach", 1);
}

/** The reader and the writer of the pipe, each with the kit as its peer. */
const ROLES = [{ own: 1, peer: 0 }, { own: 0, peer: 1 }] as const;

/** A file in which only the peer has attached, and its lock. */
function putPeer(place: FilePlace, peer: number, name: string, state = ATTACHED): PeerFile {
  const file = place.put(image(peer === 0 ? [state, VACANT] : [VACANT, state]), name);
  file.lockRecord(peer);
  return file;
}

/** What waits for the peer: a read, or a write for which there is no room. */
async function waitFor(end: Opened, own: number, ms: number): Promise<Read> {
  if (own === 1) return await end.session.read(ms);
  while (await end.session.write({ count: 80 }, false) === "ok");
  const answer = await end.session.write({ count: 80 }, true, ms);
  return typeof answer === "string" ? { end: answer } : { end: answer.code, reason: answer.reason };
}

const lost = drained([], "peer.failed", "peer.lost");

async function dead(place: FilePlace): Promise<void> {
  for (const { own, peer } of ROLES) {
    const file = putPeer(place, peer, `${own}`);
    const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
    file.unlockRecord(peer);
    expect(await waitFor(end, own, LONG_MS), lost, `${DEAD} endpoint ${own}, whose peer is dead`);
    file.stateIs(DEAD, peer, LOST);
    await end.drop();
  }
}

async function dies(place: FilePlace): Promise<void> {
  for (const { own, peer } of ROLES) {
    let isSoon = false;
    for (let attempt = 0; attempt < TRIES && !isSoon; attempt++) {
      const file = putPeer(place, peer, `${own} ${attempt}`);
      const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
      const waiting = waitFor(end, own, LONG_MS);
      waiting.catch(() => {});
      await asleep(file, own);
      file.unlockRecord(peer);
      isSoon = await settles(waiting, FOUND_MS);
      expect(await waiting, lost, `${DEAD} endpoint ${own}, whose peer dies`);
      file.stateIs(DEAD, peer, LOST);
      await end.drop();
    }
    demand(isSoon, `[wait.slice] endpoint ${own}: in every try after more than ${FOUND_MS} ms`);
  }
}

/** Waits until somebody asks to be rung, as long as those who poll may take not to. */
async function asleep(file: PeerFile, own: number): Promise<void> {
  const wants = controlWord(file, 0, own === 1 ? "reader_wants" : "writer_wants");
  const until = performance.now() + 100;
  while (Atomics.load(file.words(), wants) === 0 && performance.now() < until) await rest(1);
}

async function lives(place: FilePlace): Promise<void> {
  const ms = FOUND_MS - 50;
  for (const { own, peer } of ROLES) {
    const timedOut = drained([], own === 1 ? "nothing" : "wait.timeout");
    const file = putPeer(place, peer, `${own}`);
    const end = await place.open("attach", own, { path: file.path }).ready(DEAD);
    expect(await waitFor(end, own, ms), timedOut, `${DEAD} endpoint ${own}, whose peer lives`);
    file.stateIs(DEAD, peer, ATTACHED);
    file.setState(peer, CLOSED);
    file.unlockRecord(peer);
    const closed = drained([], "peer.closed");
    expect(await waitFor(end, own, ms), closed, `${DEAD} endpoint ${own}, whose peer has closed`);
    file.stateIs(DEAD, peer, CLOSED);
    await end.drop();
  }
  const file = place.put(image([VACANT, VACANT]), "vacant");
  const end = await place.open("attach", 1, { path: file.path }).ready(DEAD);
  const nothing = drained([], "nothing");
  expect(await waitFor(end, 1, ms), nothing, `${DEAD} a reader whose writer has not come`);
  file.stateIs(DEAD, 0, VACANT);
  await end.drop();
}

async function vacateLocked(place: FilePlace): Promise<void> {
  const VACATES = "[segment.vacate_dead]";
  for (const { own, peer } of ROLES) {
    for (const state of [CLOSED, LOST]) {
      const name = `${own} ${state}`;
      const file = putPeer(place, peer, name);
      const end = await place.open("attach", own, { path: file.path }).ready(VACATES);
      file.setState(peer, state);
      const of = `endpoint ${own}, whose peer is in state ${state}`;
      for (let time = 0; time < 2; time++) {
        const got = await end.session.vacate();
        expect(got, "refused", `${VACATES} ${of}, and locked`);
        file.stateIs(VACATES, peer, state);
      }
      file.unlockRecord(peer);
      expect(await end.session.vacate(), "ok", `${VACATES} ${of}, and locked by nobody`);
      file.stateIs("[segment.vacate_state]", peer, VACANT + (1 << 8));
      await end.drop();
    }
  }
}
