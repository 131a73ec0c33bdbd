/**
 * A testee that is no good as a program: `deno run -A bad.ts HOW`. It does all that it is told, but
 * a read, which it answers in the way that HOW says.
 *
 * @module
 */

import { small } from "../broken/adapter.ts";
import { lines, Server } from "../server.ts";

/** How it misbehaves. */
const WAYS: Record<string, (reply: { id: number }) => void> = {
  crash() {
    console.error("out of cheese");
    Deno.exit(3);
  },
  hang: () => {},
  garbage: () => say("Segmentation fault"),
  bytes: () => write(Uint8Array.of(0xff, 0xfe, 0x0a)),
  flood() {
    for (;;) say("again");
  },
  endless() {
    const block = new Uint8Array(1 << 20).fill("x".charCodeAt(0));
    for (;;) write(block);
  },
  order: (reply) => say(JSON.stringify({ ...reply, id: reply.id + 1 })),
  twice(reply) {
    say(JSON.stringify(reply));
    say(JSON.stringify(reply));
  },
  field: ({ id }) =>
    say(JSON.stringify({ id, result: { item: { kind: "1", codec: 0, tag: 0, hex: "" } } })),
  member: ({ id }) => say(JSON.stringify({ id, result: { end: "nothing", because: "of this" } })),
  code: ({ id }) => say(JSON.stringify({ id, error: { code: "frame.wrong" } })),
  both: ({ id }) => say(JSON.stringify({ id, result: { end: "nothing" }, decline: "or not" })),
  half() {
    write(new TextEncoder().encode('{"id":'));
    Deno.exit(0);
  },
  declines: ({ id }) => say(JSON.stringify({ id, decline: "not today" })),
};

function write(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

function say(line: string): void {
  write(new TextEncoder().encode(line + "\n"));
}

const way = WAYS[Deno.args[0]!];
if (way === undefined) throw new Error(`ways: ${Object.keys(WAYS).join(", ")}`);
const server = new Server({ ...small, hello: { ...small.hello, carriers: ["bytes"] } });
for await (const line of lines(Deno.stdin.readable)) {
  const command = JSON.parse(line);
  const reply = await server.answer(command);
  if (command.command === "read") way(reply);
  else say(JSON.stringify(reply));
}
