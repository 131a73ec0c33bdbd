import { assertEquals } from "@std/assert";

Deno.test("an event has what a MessageEvent has, and does not touch that global", async () => {
  const name = "MessageEvent";
  const own = Object.getOwnPropertyDescriptor(globalThis, name)!;
  let touches = 0;
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => (touches++, own.value),
  });
  try {
    const { PortEvent } = await import("./events.ts?anew");
    const target = new EventTarget();
    const events = [1, 2].map((data) => new PortEvent("message", target, data));
    assertEquals([events.length, events[0] instanceof Event, events[0]!.bubbles], [2, true, false]);
    const { type, data, origin, lastEventId, source, ports, target: at } = events[0]!;
    assertEquals([type, data, origin, lastEventId], ["message", 1, "", ""]);
    assertEquals([source, ports, at], [null, [], target]);
    assertEquals(touches, 0);
  } finally {
    Object.defineProperty(globalThis, name, own);
  }
});
