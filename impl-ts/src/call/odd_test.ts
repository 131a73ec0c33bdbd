/** What methods give may be anything: it is answered, and the port goes on. */

import { assertEquals } from "@std/assert";
import { serve } from "./call.ts";
import { CALL, CANCEL, outcome, RETURN, THROW, turns, withRaw } from "./fixture.ts";
import { MillraceError } from "../error.ts";

/** Throws whatever is asked of it. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const boom = () => {
  throw new RangeError("boom");
};
/** An object whose property of this name throws. */
const trap = (name: PropertyKey, more = {}) => Object.defineProperty(more, name, { get: boom });
const steps = (next: () => unknown, more = {}) => ({ next, [Symbol.iterator]: boom, ...more });
const items = (value: unknown) => steps(() => value);

/** Each with the name of the error, or the value, with which it is answered. */
const ODD: Record<string, [() => unknown, string | [unknown]]> = {
  nextGetter: [() => trap("next"), "RangeError"],
  hasTrap: [() => new Proxy({}, { has: boom }), "RangeError"],
  getTrap: [() => new Proxy({}, { get: boom }), "RangeError"],
  revokedResult: [revoked, "TypeError"],
  revokedThrown: [() => raise(revoked()), "Error"],
  revokedRejected: [() => Promise.reject(revoked()), "Error"],
  prototypeTrap: [() => new Proxy({}, { getPrototypeOf: boom }), "call.result"],
  jsonThrows: [() => ({ toJSON: boom }), "call.result"],
  jsonRevoked: [() => ({ toJSON: () => raise(revoked()) }), "call.result"],
  jsonLost: [
    () => ({ toJSON: () => raise(new MillraceError("peer.closed", "")) }),
    "call.result",
  ],
  nameGetter: [() => raise(trap("name")), "Error"],
  nameSymbol: [() => raise({ name: Symbol("x"), message: 5 }), "Error"],
  messageGetter: [() => raise(trap("message", { name: "Odd" })), "Odd"],
  dataGetter: [() => raise(trap("data", new Error("data"))), "Error"],
  null: [() => raise(null), "Error"],
  asyncIterator: [() => ({ [Symbol.asyncIterator]: boom }), "RangeError"],
  noSteps: [() => ({ [Symbol.asyncIterator]: () => undefined }), "TypeError"],
  noStep: [() => items(undefined), "TypeError"],
  stepNumber: [() => items(5), "TypeError"],
  stepRevoked: [() => items(revoked()), "TypeError"],
  doneThrows: [() => items(trap("done")), "RangeError"],
  valueThrows: [() => items(trap("value", { done: false })), "RangeError"],
  lastThrows: [() => items(trap("value", { done: true })), "RangeError"],
  itemRevoked: [() => items({ done: false, value: revoked() }), "call.result"],
  returnThrows: [() => steps(() => ({ value: 1n }), { return: boom }), "call.result"],
  laterStep: [() => items(Promise.resolve(trap("done"))), "RangeError"],
  laterNoStep: [() => items(Promise.resolve()), "TypeError"],
  thenGetter: [() => trap("then"), "RangeError"],
  thenThrows: [() => ({ then: boom }), "RangeError"],
  thenThrowsLate: [() => ({ then: (done: (n: number) => void) => (done(1), boom()) }), [1]],
  thenTwice: [() => ({
    then(done: (n: unknown) => void, fail: (error: unknown) => void) {
      done(items({ done: true, value: 1 }));
      done(2);
      fail(new Error("late"));
    },
  }), [1]],
  thenThen: [() => ({ then: (done: (n: unknown) => void) => done(Promise.resolve(7)) }), [7]],
  thenOdd: [() => ({ then: (done: (n: unknown) => void) => done(trap("next")) }), "RangeError"],
  laterOdd: [() => Promise.resolve(trap("next")), "RangeError"],
};

function raise(error: unknown): never {
  throw error;
}

Deno.test("[call.answer] whatever a method gives or throws is answered", async () => {
  const [port, raw] = withRaw({ capacity: 1 << 16 });
  using _port = port;
  const names = Object.keys(ODD);
  const methods = names.map((name) => [name, ODD[name]![0]] as const);
  serve(port, { ...Object.fromEntries(methods), ok: () => "ok" });
  for (const [index, name] of names.entries()) {
    raw.send(CALL, index + 1, name);
    raw.send(CALL, 0, name); // the same as a notice, whose fault is a report
  }
  raw.send(CALL, 5000, "ok");
  for (let turn = 0; turn < 5; turn++) {
    let seen: unknown;
    do {
      seen = outcome(() => port.tryRead());
      assertEquals(seen === undefined || seen === "call.thrown", true, String(seen));
    } while (seen !== undefined);
    await turns();
  }
  const answers = new Map(raw.take().map(([kind, tag, value]) => [tag, [kind, value]]));
  const seen = names.map((_, index) => answers.get(index + 1));
  assertEquals(
    Object.fromEntries(names.map((name, index) => [name, seen[index]])),
    Object.fromEntries(names.map((name) => {
      const wanted = ODD[name]![1];
      return [name, typeof wanted === "string" ? [THROW, wanted] : [RETURN, ...wanted]];
    })),
  );
  assertEquals(answers.get(5000), [RETURN, "ok"]);
});

Deno.test("[call.cancelled] an iterator whose return throws is left by a cancel", () => {
  const [port, raw] = withRaw();
  using _port = port;
  serve(port, { endless: () => steps(() => ({ value: 1 }), { return: boom }) });
  raw.send(CALL, 1, "endless");
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take().length, 16);
  raw.send(CALL, 1 + CANCEL);
  assertEquals(port.tryRead(), undefined);
  assertEquals(raw.take(), [[THROW, 1, "call.cancelled", "call.cancelled"]]);
});
