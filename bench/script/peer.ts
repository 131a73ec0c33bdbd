/**
 * What a peer of the JavaScript drivers is: one way to bring messages from thread to thread.
 *
 * A peer knows nothing of scenarios: it makes two ends, and the plays drive them. The files in
 * `peers/` export those that have their code in common, and `peers.ts` has a line for each.
 *
 * @module
 */
import type { Result, Scenario } from "../contract.ts";
import type { Place, Player } from "./place.ts";

/** Which end: `a` asks and sends, `b` answers and receives. */
export type Role = "a" | "b";

/** An end whose thread blocks, or spins, until it can go on. */
export interface BlockingEnd {
  readonly kind: "blocking";
  /** Sends the payload with this number. */
  send(number: number): void;
  /** Waits for a payload, checks it, and returns its number modulo 256. */
  receive(): number;
  /** `receive` without waiting; below 0 if nothing is there. */
  tryReceive?(): number;
  /** Sends what `send` has gathered. */
  flush?(): void;
  /** Waits so many milliseconds for what does not come. */
  idle?(ms: number): void;
  /** Sleeps so far. */
  sleeps?(): number;
  close(): void;
}

/** An end that lives on the event loop of its thread. */
export interface EventEnd {
  readonly kind: "events";
  /** Sends; a promise says when the message was taken over. */
  send(number: number): void | Promise<unknown>;
  /** Whether the promise of `send` can be awaited for that. */
  readonly tells?: boolean;
  /** How many messages of a stream are best sent at once; the promise of the last is awaited. */
  readonly batch?: number;
  /** Calls for each payload that comes, with its number modulo 256. */
  listen(take: (number: number) => void): void;
  sleeps?(): number;
  close(): void | Promise<void>;
}

/** One end of a peer. */
export type End = BlockingEnd | EventEnd;

/** One end of a library that calls functions of the other end, and offers its own. */
export interface CallEnd {
  readonly kind: "calls";
  /** Whether a call returns its result, and not a promise of it. */
  readonly blocks: boolean;
  /** Offers this function, and one that calls that of the other end for what it returns. */
  serve(answer: (number: number) => number): void;
  /** Calls the function of the other end. */
  ask(number: number): number | Promise<number>;
  /** Calls that which calls back. */
  nest(number: number): number | Promise<number>;
  /** Serves until the other end has said that it calls no more. */
  rest(): void | Promise<void>;
  /** Says so. */
  leave(): void | Promise<unknown>;
  sleeps?(): number;
  close(): void | Promise<void>;
}

/** What the thread of an end gets, and what of it is transferred. */
export interface Gear {
  readonly value: unknown;
  readonly transfer?: readonly Transferable[];
}

/** Everything that a thread needs to play its role. */
export interface Order {
  readonly peer: string;
  readonly role: Role;
  readonly scenario: Scenario;
  readonly gear: unknown;
  /** Whether the threads have not played yet. */
  readonly isNew: boolean;
  /** The words through which the two plays agree when to stop; see `control.ts`. */
  readonly control: SharedArrayBuffer;
}

/** What one role has measured; the driver puts both together. */
export type Report = Partial<Result>;

/** Plays a role with an end that its caller has made. */
export type PlayRole = (end: End, order: Order, place: Place) => Promise<Report>;

/**
 * One way to bring messages from thread to thread. A thread plays one peer in one scenario, as
 * often as there are repetitions: what a peer keeps in its module is theirs, and stays warm.
 */
export interface Peer {
  /** Why it cannot do this, in a few words; `undefined` if it can. */
  decline(scenario: Scenario, place: Place): string | undefined;
  /** Makes what the two threads get. On the main thread. */
  prepare(scenario: Scenario, place: Place): Promise<Record<Role, Gear>> | Record<Role, Gear>;
  /** Makes an end, on the thread to which it belongs. */
  open(order: Order, place: Place): Promise<End | CallEnd> | End | CallEnd;
  /** Plays a role in a way of its own, where there is one, on the thread to which it belongs. */
  play?(order: Order, place: Place): Promise<Report> | undefined;
  /** Starts a thread that can be started only in the peer's own way. On the main thread. */
  startPlayer?(place: Place): Promise<Player>;
  /** The other end belongs to the peer: only role `a` is played. */
  readonly alone?: boolean | ((scenario: Scenario) => boolean);
}

/** What both threads get alike. */
export function both(value: unknown): Record<Role, Gear> {
  return { a: { value }, b: { value } };
}

/** A peer with no second end of ours, that plays in a way of its own. */
export function lonePeer(decline: Peer["decline"], play: NonNullable<Peer["play"]>): Peer {
  return {
    decline,
    prepare: () => both(undefined),
    open() {
      throw new Error("Cannot open: there is no other end");
    },
    play,
    alone: true,
  };
}

/** Whether only role `a` is played. */
export function isAlone({ alone = false }: Peer, scenario: Scenario): boolean {
  return typeof alone === "boolean" ? alone : alone(scenario);
}

/** How an end of this role works in this scenario, for peers that can do either. */
export function kindOf({ name, ends, awaited }: Scenario, role: Role): End["kind"] {
  if (ends === "async" || awaited && role === "a") return "events";
  // A main thread that polls needs no events, and never blocks.
  return ends === "main-worker" && role === "a" && name !== "dropbox" ? "events" : "blocking";
}

/** Why a peer that only lives on event loops cannot do a scenario. */
export function declineForEvents({ wait, pin }: Scenario): string | undefined {
  return wait === "spin" && pin === "one-core" ? "does not spin" : undefined;
}

/** Calls for each message until `take` returns true; rejects with what it throws. */
export function hear(
  end: Pick<EventEnd, "listen">,
  take: (number: number) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    end.listen((number) => {
      try {
        if (take(number)) resolve();
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** A promise and what settles it: Node 20 lacks `Promise.withResolvers`. */
export function later(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => resolve = settle);
  return { promise, resolve: () => resolve() };
}

/** Bounds every wait of a run: only a peer that hangs gets there. */
export const PATIENCE_MS = 10_000;
