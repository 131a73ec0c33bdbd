import { assertEquals } from "@std/assert";

/** Runs a program of its own, with a port and its peer. Returns what it says while it lives. */
async function run(program: string): Promise<string> {
  const mod = new URL("../mod.ts", import.meta.url).href;
  const source = `
    import { Port, Segment } from ${JSON.stringify(mod)};
    import { supervise } from ${JSON.stringify(new URL("./more/supervise.ts", mod).href)};
    import { peek } from ${JSON.stringify(new URL("./more/lend.ts", mod).href)};
    const port = Port.create(), peer = Port.attach(port.memory);
    const say = (word) => console.log(word);
    globalThis.addEventListener("unload", () => say("ended"));
    // Whatever happens. In a process of its own, so that no worker outlives it.
    const bound = setTimeout(() => { say("bounded"); Deno.exit(); }, 500);
    Deno.unrefTimer(bound);
    ${program}
  `;
  const command = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", "--cached-only", source],
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "inherit",
  });
  const { stdout } = await command.output();
  return new TextDecoder().decode(stdout).trim().split("\n").join(" ");
}

Deno.test("a port lets its process end, unless it is listened to", async () => {
  const programs: [string, string][] = [
    ["", "ended"],
    ["port.onclose = () => say('close'); port.closed.then(say);", "ended"],
    ["port.onclose = () => {}; port.onclose = null;", "ended"],
    ["port.onmessage = () => {};", "bounded ended"],
    ["port.onmessage = () => {}; port.onmessage = null;", "ended"],
    ["port.onmessage = () => {}; setTimeout(() => port.unref(), 20);", "ended"],
    ["port.unref(); port.onmessage = () => {};", "ended"],
    ["port.onmessage = () => {}; port.unref(); setTimeout(() => port.ref(), 20);", "bounded ended"],
    ["port.onmessage = () => {}; port.unref(); port.readAsync();", "bounded ended"],
    ["port.unref(); port.onmessage = () => {}; port.ref();", "bounded ended"],
    ["port.onclose = () => {}; port.onmessage = () => {};", "bounded ended"],
    // A flood: each message is written when the one before arrives.
    ["port.onmessage = () => peer.write(0); peer.write(0); port.unref();", "ended"],
    [
      "port.onmessage = () => peer.write(0); peer.write(0); port.unref();" +
      "setTimeout(() => port.ref(), 20);",
      "bounded ended",
    ],
    // A frame is lent, and is not given back.
    ["port.unref(); port.onmessage = () => {}; peer.write(0); peek(port);", "ended"],
    // The peer has gone. Somebody begins to listen while the end is being looked for.
    [
      "peer.write('got'); peer.close(); port.onclose = () => say('close');" +
      "setTimeout(() => port.onmessage = ({ data }) => say(data), 20);",
      "got close ended",
    ],
    ["port.onmessage = () => {}; setTimeout(() => port.close(), 20);", "ended"],
    ["port.onmessage = ({ data }) => say(data); peer.write('got'); peer.end();", "got ended"],
    // An unreferenced port gets a message that is there, while something else keeps the process
    // alive.
    [
      "port.unref(); port.onmessage = ({ data }) => say(data); peer.write('got');" +
      "setTimeout(() => {}, 50);",
      "got ended",
    ],
    // It gets a flood, too, as fast as with `ref`: one turn for each slice would be 256 messages.
    [
      "port.unref(); let count = 0;" +
      "port.onmessage = () => { count++; peer.write(0); }; peer.write(0);" +
      "setTimeout(() => say(count > 200 ? 'many' : `few: ${count}`), 300);",
      "many ended",
    ],
    // Watching a worker keeps nothing alive, even where its peers can only poll.
    [
      "const mem = new ArrayBuffer(4096);" +
      "const segment = Segment.create(mem, { endpoints: 2, channels: [" +
      "{ writer: 0, reader: 1, capacity: 256 }] });" +
      "supervise({ terminate() {} }, { segment, index: 0 }, { lock: 'life' });",
      "ended",
    ],
    // Posted messages keep the process alive until they are in the ring.
    [
      "while (port.tryWrite('x'.repeat(1000))); port.postMessage(1).then(() => say('sent'));" +
      "setTimeout(() => { while (peer.tryRead() !== undefined); }, 50);",
      "sent ended",
    ],
  ];
  for (const [program, said] of programs) assertEquals(await run(program), said, program);
});
