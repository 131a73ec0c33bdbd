import { assertEquals, assertRejects } from "@std/assert";
import { together } from "./together.ts";
import { Trouble, Wrong } from "./verdict.ts";

Deno.test("together: the results stand in the order of what was begun", async () => {
  const [first, second] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  const all = together([first.promise, second.promise]);
  second.resolve(2);
  first.resolve(1);
  assertEquals(await all, [1, 2]);
});

Deno.test("together: the first failure is thrown when nothing goes on any more", async () => {
  const [first, second, third] = [0, 1, 2].map(() => Promise.withResolvers<void>());
  let isOver = false;
  const all = together([first!, second!, third!].map(({ promise }) => promise));
  const told = assertRejects(() => all, Wrong, "second").finally(() => isOver = true);
  second!.reject(new Wrong("second"));
  first!.reject(new Wrong("first"));
  await new Promise((resolve) => setTimeout(resolve)); // all that is due has been done
  assertEquals(isOver, false);
  third!.resolve();
  await told;
});

Deno.test("together: a testee that breaks down is told of at once", async () => {
  const never = new Promise<void>(() => {});
  const trouble = Promise.reject(new Trouble("error", "it ended"));
  await assertRejects(() => together([never, trouble]), Trouble);
  const wrong = Promise.reject(new Wrong("refused"));
  const later = Promise.withResolvers<void>();
  const all = assertRejects(() => together([wrong, never, later.promise]), Trouble, "it ended");
  later.reject(new Trouble("error", "it ended"));
  await all;
});
