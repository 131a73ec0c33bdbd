import { assertEquals } from "@std/assert";

Deno.test("an arrival becomes a MessageEvent when asked, and in Node not before", async () => {
  const scope = globalThis as { Deno?: unknown; process?: unknown };
  const { Deno } = scope;
  void scope.process; // Deno makes it at its first touch, and needs itself for that
  const name = "MessageEvent";
  const own = Object.getOwnPropertyDescriptor(globalThis, name)!;
  let touches = 0;
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => (touches++, own.value),
  });
  try {
    delete scope.Deno; // what has a `process` and no `Deno` is Node
    const { ArrivalEvent } = await import("./port_events.ts?node");
    ArrivalEvent.prepare();
    ArrivalEvent.prepare();
    const target = new EventTarget();
    const events: Event[] = [];
    target.addEventListener("message", (event) => events.push(event));
    for (const data of [1, 2]) new ArrivalEvent("message", data).dispatchAt(target);
    assertEquals([events.length, touches], [2, 0]);
    assertEquals(events.map(({ type }) => type), ["message", "message"]);
    const answers: unknown[] = [];
    target.addEventListener("message", (event) => {
      answers.push(event instanceof MessageEvent, event instanceof Event, touches > 0);
    });
    for (const data of [3, 4]) new ArrivalEvent("message", data).dispatchAt(target);
    assertEquals(answers, [true, true, true, true, true, true]);
    assertEquals(events.map((event) => event instanceof MessageEvent), Array(4).fill(true));
    const { data, origin, lastEventId, source, ports, target: at } = events[0] as MessageEvent;
    assertEquals([data, origin, lastEventId, source, ports, at], [1, "", "", null, [], target]);
  } finally {
    scope.Deno = Deno;
    Object.defineProperty(globalThis, name, own);
  }
});
