import { assert, assertEquals, assertThrows } from "@std/assert";
import * as mod from "./mod.ts";
import { markFailed } from "./wait/state.ts";

Deno.test("errors say their code, their kind and, for a failure, the reason", () => {
  const text = "Cannot read: the peer is marked failed";
  const error = new mod.MillraceError("peer.failed", text, { reason: 67 });
  assertEquals([error.code, error.name, error.reason], [
    "peer.failed",
    "PeerFailedError",
    "peer.lost",
  ]);
  assert(error instanceof mod.MillraceError && error instanceof Error);
  assertEquals(error.message, `${text} (peer.failed)`);
  // [pipe.failed_reason] An unknown reason is a number; no reason is undefined.
  for (const [reason, shown] of [[9999, 9999], [0, undefined], [10, "segment.state"]] as const) {
    for (const code of ["peer.failed", "pipe.failed"] as const) {
      assertEquals(new mod.MillraceError(code, "x", { reason }).reason, shown);
    }
  }
});

Deno.test("a failure says its reason in its text, unless none was given", () => {
  for (const [reason, text] of [[67, ": peer.lost"], [0, ""], [9999, ": reason 9999"]] as const) {
    using port = mod.Port.create();
    markFailed(port.segment, 1, reason);
    const { message } = assertThrows(() => port.read(), mod.MillraceError);
    assertEquals(message, `Cannot read: the peer is marked failed${text} (peer.failed)`);
  }
});

const KINDS = [
  [mod.SegmentError, "segment.size", "segment.unready", "mailbox.size"],
  [mod.CorruptError, "ring.cursor", "frame.size", "mailbox.index", "fanout.record"],
  [mod.MessageError, "message.lost"],
  [mod.PeerClosedError, "peer.closed"],
  [mod.PeerFailedError, "peer.failed"],
  [mod.ClosedError, "pipe.closed", "pipe.failed"],
  [mod.OverflowError, "port.overflow"],
  [mod.TimeoutError, "wait.timeout"],
  [mod.ForbiddenError, "wait.forbidden"],
] as const;

Deno.test("instanceof tells the kind of an error by its code, and no other kind", () => {
  for (const [kind, ...codes] of KINDS) {
    for (const code of codes as readonly mod.ReasonCode[]) {
      const error = new mod.MillraceError(code, "x");
      const found = KINDS.filter(([each]) => error instanceof each).map(([each]) => each.name);
      assertEquals([code, ...found], [code, kind.name]);
      assertEquals([error.name, String(error)], [kind.name, `${kind.name}: x (${code})`]);
    }
    for (const other of [new Error("x"), { kind: kind.name }, undefined]) {
      assertEquals(other instanceof kind, false);
    }
  }
});

Deno.test("a class that extends MillraceError has its own name", () => {
  class OwnError extends mod.MillraceError {
    override name = "OwnError";
  }
  const error = new OwnError("message.lost", "x");
  assert(error instanceof mod.MillraceError && error instanceof mod.MessageError);
  assertEquals(String(error), "OwnError: x (message.lost)");
  assertEquals([mod.MillraceError.name, OwnError.name], ["MillraceError", "OwnError"]);
});

Deno.test("a code of this library's own never stands in shared memory", () => {
  using port = mod.Port.create();
  const local = "port.overflow" as mod.SharedReason;
  assertThrows(() => mod.failEndpoint(port.segment, 1, local), TypeError);
  assertEquals(mod.failEndpoint(port.segment, 1, "peer.lost"), true);
});

Deno.test("mod.ts lists the public interface, and nothing of the inside", () => {
  assertEquals(Object.keys(mod).sort(), [
    "ClosedError",
    "CorruptError",
    "ForbiddenError",
    "MessageError",
    "MillraceError",
    "OverflowError",
    "PeerClosedError",
    "PeerFailedError",
    "Port",
    "Reader",
    "Segment",
    "SegmentError",
    "TimeoutError",
    "Writer",
    "agentMechanism",
    "closeEndpoint",
    "failEndpoint",
    "generationOf",
    "isPortHandoff",
    "pollingMechanism",
    "portGeometry",
    "portMemory",
    "receivePort",
    "segmentSize",
    "statsOf",
  ]);
});
