import { assertEquals } from "@std/assert";

Deno.test("an arrival becomes a MessageEvent when asked, and not before", async () => {
  const name = "MessageEvent";
  const own = Object.getOwnPropertyDescriptor(globalThis, name)!;
  let touches = 0;
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => (touches++, own.value),
  });
  try {
    const { ArrivalEvent, PortEventTarget } = await import("./events.ts?anew");
    const target = new PortEventTarget(() => ({ listen() {} }));
    const events: Event[] = [];
    target.addEventListener("message", (event: Event) => events.push(event));
    const dispatch = (data: number) =>
      target.dispatchEvent(new ArrivalEvent("message", data, target));
    for (const data of [1, 2]) dispatch(data);
    assertEquals([events.length, touches], [2, 0]);
    assertEquals(events.map(({ type }) => type), ["message", "message"]);
    assertEquals([events[0]!.bubbles, touches], [false, 0]);
    const answers: unknown[] = [];
    target.addEventListener("message", (event: Event) => {
      answers.push(event instanceof MessageEvent, event instanceof Event, touches > 0);
    });
    for (const data of [3, 4]) dispatch(data);
    assertEquals(answers, [true, true, true, true, true, true]);
    assertEquals(events.map((event) => event instanceof MessageEvent), Array(4).fill(true));
    const { data, origin, lastEventId, source, ports, target: at } = events[0] as MessageEvent;
    assertEquals([data, origin, lastEventId, source, ports, at], [1, "", "", null, [], target]);
  } finally {
    Object.defineProperty(globalThis, name, own);
  }
});
