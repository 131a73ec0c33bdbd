import { assert, assertEquals, assertThrows } from "@std/assert";
import * as mod from "./mod.ts";

Deno.test("errors say their code, their class and, for a failure, the reason", () => {
  const error = new mod.PeerFailedError("Cannot read: the peer is marked failed", 67);
  assertEquals([error.code, error.name, error.reason], [
    "peer.failed",
    "PeerFailedError",
    "peer.lost",
  ]);
  assert(error instanceof mod.MillraceError && error instanceof Error);
  assertEquals(error.message, "Cannot read: the peer is marked failed: peer.lost (peer.failed)");
  // [pipe.failed_reason] An unknown reason is a number; no reason is undefined.
  for (const [value, reason] of [[9999, 9999], [0, undefined], [10, "segment.state"]] as const) {
    assertEquals(new mod.PeerFailedError("x", value).reason, reason);
    assertEquals(new mod.ClosedError("pipe.failed", "x", value).reason, reason);
  }
  assertEquals(new mod.PeerFailedError("x", 0).message, "x: no reason given (peer.failed)");
  assertEquals(new mod.TimeoutError("x").code, "wait.timeout");
  assertEquals(new mod.ForbiddenError("x").code, "wait.forbidden");
});

Deno.test("an error is called like its class, a program's own class among them", () => {
  class OwnError extends mod.MessageError {}
  for (const Class of [mod.SegmentError, mod.CorruptError, mod.MessageError, OwnError]) {
    const error = new Class("message.lost", "x");
    assertEquals([Class.name, error.name], [error.constructor.name, Class.name]);
    assertEquals(String(error), `${Class.name}: x (message.lost)`);
  }
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
    "PortCloseEvent",
    "PortEventTarget",
    "Reader",
    "Segment",
    "SegmentError",
    "TimeoutError",
    "Writer",
    "agentMechanism",
    "closeEndpoint",
    "failEndpoint",
    "generationOf",
    "pollingMechanism",
    "portGeometry",
    "portMemory",
    "receivePort",
    "segmentSize",
  ]);
});
