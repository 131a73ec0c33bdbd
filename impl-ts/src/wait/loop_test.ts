import { assertEquals } from "@std/assert";
import { nextTask, repeat, unref } from "./loop.ts";

/** What comes before the end of a task that is asked for now. */
async function before(next: typeof nextTask): Promise<string[]> {
  const seen: string[] = [];
  const timer = new Promise<void>((resolve) => setTimeout(resolve, 0));
  queueMicrotask(() => seen.push("microtask"));
  Promise.resolve().then(() => {}).then(() => seen.push("its end"));
  await new Promise<void>((resolve) => next(resolve));
  seen.push("task");
  await timer;
  return seen;
}

Deno.test("nextTask comes after the job and all its microtasks, also as in a page", async () => {
  const scope = globalThis as { setImmediate?: unknown };
  const { setImmediate } = scope;
  let page: { nextTask: typeof nextTask };
  try {
    delete scope.setImmediate;
    page = await import("./loop.ts?page");
  } finally {
    scope.setImmediate = setImmediate;
  }
  for (const next of [nextTask, page.nextTask]) {
    assertEquals(await before(next), ["microtask", "its end", "task"]);
  }
  // A flood of tasks lets timers come.
  for (const next of [nextTask, page.nextTask]) {
    let over = false;
    setTimeout(() => over = true, 0);
    let count = 0;
    while (!over && count < 1e5) {
      await new Promise<void>((resolve) => next(resolve));
      count++;
    }
    assertEquals(over, true);
  }
});

Deno.test("unref takes whatever a runtime calls a timer", () => {
  let calls = 0;
  unref({ unref: () => calls++ });
  unref({});
  const timer = setTimeout(() => {}, 1e6);
  unref(timer);
  clearTimeout(timer);
  assertEquals(calls, 1);
});

Deno.test("repeat: what is ended as its time is up is over", async () => {
  let calls = 0;
  let end = () => {};
  const endFirst = repeat(5, () => end());
  end = repeat(5, () => calls++);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 15); // the time of both is up
  await new Promise((resolve) => setTimeout(resolve, 30));
  endFirst();
  assertEquals(calls, 0);
});
