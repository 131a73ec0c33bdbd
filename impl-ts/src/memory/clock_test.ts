import { assert, assertEquals } from "@std/assert";

/** What the clock offers. */
type Clock = typeof import("./clock.ts");

const NAMES = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate"];
const ALL = [...NAMES, "performance", "Date"];

/** Replaces globals as test frameworks do, while `work` runs: what is fake never comes or moves. */
async function faking<T>(work: () => Promise<T>, isMarked = false): Promise<T> {
  const scope = globalThis as Record<string, unknown>;
  const own = ALL.map((name) => [name, Object.getOwnPropertyDescriptor(scope, name)!] as const);
  const clock: Record<string, unknown> = {};
  for (const name of ALL) {
    clock[`_${name}`] = scope[name];
    const fake = NAMES.includes(name) ? () => 0 : { now: () => 0, timeOrigin: 0 };
    scope[name] = isMarked ? Object.assign(fake, { clock }) : fake;
  }
  try {
    return await work();
  } finally {
    for (const [name, descriptor] of own) Object.defineProperty(scope, name, descriptor);
  }
}

/** Fails unless clocks move, timers come, and a timer that is cleared does not. */
async function check(clock: Clock): Promise<void> {
  const start = clock.now();
  const system = clock.systemTime();
  let cleared = false;
  clock.clearTimeout(clock.setTimeout(() => cleared = true, 1));
  await new Promise<void>((resolve) => {
    let count = 0;
    const timer = clock.setInterval(() => {
      if (++count < 3) return;
      clock.clearInterval(timer);
      clock.setTimeout(resolve, 5);
    }, 5);
  });
  assertEquals(cleared, false);
  assert(clock.now() > start && clock.systemTime() > system && clock.fineClock()!.timeOrigin > 0);
  if (clock.immediate() !== undefined) await new Promise<void>((now) => clock.immediate()!(now));
}

Deno.test("clock: what is faked after it was loaded, before the first use or later", async () => {
  const first: Clock = await import("./clock.ts?first");
  await faking(() => check(first));
  await check(first);
  await faking(() => check(first));
});

Deno.test("clock: what @sinonjs/fake-timers has faked before it is loaded", async () => {
  const second: Clock = await faking(() => import("./clock.ts?second"), true);
  await check(second);
  await faking(() => check(second), true);
});

Deno.test("clock: a place without any of it can load it, and has the system's clock", async () => {
  const scope = globalThis as Record<string, unknown>;
  const names = ALL.filter((name) => name !== "Date");
  const own = names.map((name) => [name, Object.getOwnPropertyDescriptor(scope, name)!] as const);
  for (const name of names) delete scope[name];
  let third: Clock;
  try {
    third = await import("./clock.ts?third");
  } finally {
    for (const [name, descriptor] of own) Object.defineProperty(scope, name, descriptor);
  }
  assertEquals([third.fineClock(), third.immediate()], [undefined, undefined]);
  assert(Math.abs(third.now() - Date.now()) < 60_000);
});
