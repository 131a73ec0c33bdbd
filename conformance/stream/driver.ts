/**
 * Plays a case of a stream against an endpoint, whatever cuts its transport makes.
 *
 * @module
 */

import { fromHex } from "../reference/bytes.ts";
import type { Payload, Result, Wanted } from "../reference/case.ts";
import { compare, toBytes } from "../static/difference.ts";
import type { Sent, Setting, Sizes, StreamResult, Taken } from "./case.ts";
import { StreamPeer } from "./taker.ts";

/** One side of a stream, without a transport. A call that may take its time returns a promise. */
export interface StreamEndpoint {
  arrive(bytes: Uint8Array): void;
  cut(): void;
  read(count: number): Promise<Result>;
  write(payload: Payload): Result;
  post(payload: Payload): Result;
  end(): Result;
  close(): Result;
  /** All that there is to be sent, and whether the byte stream ends after it. */
  take(): Promise<{ bytes: Uint8Array; ends: boolean }>;
}

/** Makes an endpoint. */
export type OpenStream = (own: Sizes, limit: number) => StreamEndpoint;

/** How what arrives is cut: into pieces of so many bytes, or in two at this byte. */
export type Cut = { pieces: number } | { two: number };

/** Plays a case; returns what differs from what must come. */
export async function play(
  open: OpenStream,
  setting: Setting,
  results: readonly StreamResult[],
  cut: Cut,
): Promise<string[]> {
  const { own, limit = 4096, operations } = setting;
  const endpoint = open(own, limit);
  const peer = new StreamPeer();
  const problems: string[] = [];
  let arrived = 0;
  for (const [index, operation] of operations.entries()) {
    let got: StreamResult = "ok";
    if ("arrive" in operation) {
      const bytes = fromHex(operation.arrive.join(""));
      peer.sends(bytes);
      for (const piece of cutUp(bytes, arrived, cut)) endpoint.arrive(piece);
      arrived += bytes.length;
    } else if ("cut" in operation) endpoint.cut();
    else if ("read" in operation) {
      got = await endpoint.read(operation.read === true ? Infinity : operation.read);
    } else if ("write" in operation) got = endpoint.write(operation.write);
    else if ("post" in operation) got = endpoint.post(operation.post);
    else if ("end" in operation) got = endpoint.end();
    else if ("close" in operation) got = endpoint.close();
    else {
      const { bytes, ends } = await endpoint.take();
      got = peer.take(bytes, ends);
    }
    const found = differences(got, results[index]!);
    problems.push(...found.map((text) => `operation ${index}, ${text}`));
  }
  return problems;
}

function cutUp(bytes: Uint8Array, arrived: number, cut: Cut): Uint8Array[] {
  if ("two" in cut) {
    const at = Math.min(Math.max(0, cut.two - arrived), bytes.length);
    return [bytes.slice(0, at), bytes.slice(at)];
  }
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += cut.pieces) {
    pieces.push(bytes.slice(at, at + cut.pieces));
  }
  return pieces;
}

/** Bytes that arrive in a case. */
export function arriving({ operations }: Setting): number {
  return operations.reduce(
    (sum, each) => sum + ("arrive" in each ? fromHex(each.arrive.join("")).length : 0),
    0,
  );
}

/** In what a result differs from the one that must come. */
export function differences(got: StreamResult, must: StreamResult): string[] {
  if (!isTaken(must)) {
    if (isTaken(got)) return ["the transport was given something"];
    return compare(got, must as Wanted).map(({ text }) => text);
  }
  if (!isTaken(got)) return [`expected something to be sent, got ${JSON.stringify(got)}`];
  const texts: string[] = [];
  const [is, wanted] = [got.sent.map(shown), must.sent.map(shown)];
  if (is.join(", ") !== wanted.join(", ")) {
    texts.push(`sent: expected ${wanted.join(", ") || "nothing"}, got ${is.join(", ")}`);
  }
  const credit = got.credit ?? "none";
  if (must.credit !== undefined && must.credit !== credit) {
    texts.push(`credit: expected ${must.credit}, got ${credit}`);
  }
  if (must.ends !== got.ends) texts.push(`the end: expected ${!!must.ends}, got ${!!got.ends}`);
  return texts;
}

function isTaken(result: StreamResult): result is Taken {
  return typeof result === "object" && "sent" in result;
}

function shown(sent: Sent): string {
  if (!("kind" in sent)) return JSON.stringify(sent);
  const { kind, codec, tag } = sent;
  return `message ${kind} ${codec} ${tag}: ${toBytes(sent).join(" ")}`;
}
