/**
 * A program that has just started: it imports a library, makes a port and sends a first message.
 *
 * It is alone in its process or its worker, and imports nothing else: what another module has
 * loaded or compiled before would not be seen.
 *
 * @module
 */

/** What a library is, as far as this needs to know it. */
export type Library = "port" | "sab" | "native";

/** What to do, and with which library. */
export interface StartOrder {
  readonly library: Library;
  /** The address of its module. */
  readonly url: string;
  /** `start`: everything, to the first answer; `send`: the first message for `first-event`. */
  readonly what: "start" | "send" | "first-event" | Verb;
  readonly value: { readonly id: number };
  /** `first-event`: the other end of the port, as its library passes it on. */
  readonly handoff?: unknown;
}

/**
 * A verb whose first use is timed, after one round trip by the others; or a first message of
 * 1 MiB.
 */
export type Verb = "readAsync" | "postMessage" | "readable" | "large";

/** Milliseconds of each part; none for a verb that the library has not. */
export interface StartReport {
  readonly times: Readonly<Record<string, number>>;
  /** `send`: what the other end needs, and what of it moves. */
  readonly handoff?: unknown;
  readonly transfer?: readonly Transferable[];
}

/** Two ends of a port, both in this thread. */
interface Pair {
  /** There and back. */
  roundTrip(value: unknown): Promise<unknown> | unknown;
  /** Sends from the one end, so that the other may take it at once. */
  send(value: unknown): Promise<void> | void;
  readonly verbs: Partial<Record<Verb, (value: unknown) => Promise<unknown>>>;
}

/** What one library needs for it; only its own part of the names below is ever touched. */
interface Adapter {
  load(url: string): Promise<unknown> | unknown;
  create(library: unknown): unknown;
  handoff(here: unknown): readonly [unknown, readonly Transferable[]];
  attach(library: unknown, handoff: unknown): unknown;
  pair(here: unknown, there: unknown, url: string): Pair;
}

/** What is used of a port of any of the libraries. */
interface AnyPort {
  onmessage: ((event: { data: unknown }) => void) | null;
  handoff(): unknown;
  write(value: unknown): void;
  read(): unknown;
  readAsync(): Promise<unknown>;
  asyncRead(): Promise<unknown>;
  postMessage(value: unknown): Promise<void>;
  postInit(): [unknown, Transferable[]];
}

/** The entry of Web Streams. */
interface Streams {
  readableOf(port: unknown): ReadableStream<unknown>;
}

const import_ = (url: string) => import(url);

const PORT: Adapter = {
  load: import_,
  create: (library) => (library as { Port: { create(): unknown } }).Port.create(),
  handoff: (here) => [(here as AnyPort).handoff(), []],
  attach: (library, handoff) =>
    (library as { Port: { from(message: unknown): unknown } }).Port.from(handoff),
  pair(a, b, url): Pair {
    const [here, there] = [a as AnyPort, b as AnyPort];
    return {
      roundTrip(value) {
        here.write(value);
        there.write(there.read());
        return here.read();
      },
      send: (value) => here.write(value),
      verbs: {
        readAsync(value) {
          const read = there.readAsync();
          here.write(value);
          return read;
        },
        async postMessage(value) {
          await here.postMessage(value);
          return there.read();
        },
        async readable(value) {
          const { readableOf } = await import(new URL("streams.js", url).href) as Streams;
          const reader = readableOf(there).getReader();
          here.write(value);
          return (await reader.read()).value;
        },
        large(value) {
          const read = there.readAsync();
          here.postMessage(value);
          return read;
        },
      },
    };
  },
};

const SAB: Adapter = {
  load: import_,
  create: (library) => new (library as { SABMessagePort: new () => unknown }).SABMessagePort(),
  handoff: (here) => [(here as AnyPort).postInit()[0], []],
  attach: (library, handoff) =>
    (library as { SABMessagePort: { from(message: unknown): unknown } }).SABMessagePort
      .from(handoff),
  pair(a, b): Pair {
    const [here, there] = [a as AnyPort, b as AnyPort];
    const readAsync = (value: unknown) => {
      const read = there.asyncRead();
      here.postMessage(value);
      return read;
    };
    return {
      async roundTrip(value) {
        await here.postMessage(value);
        await there.postMessage(there.read());
        return here.read();
      },
      send: (value) => here.postMessage(value),
      verbs: { readAsync, large: readAsync },
    };
  },
};

const NATIVE: Adapter = {
  load: () => undefined,
  create: () => new MessageChannel(),
  handoff(here) {
    const { port2 } = here as MessageChannel;
    return [port2, [port2]];
  },
  attach: (_library, handoff) => handoff,
  pair(here, there): Pair {
    const [a, b] = [(here as MessageChannel).port1, there as MessagePort];
    const answer = (value: unknown) =>
      new Promise((resolve) => {
        b.onmessage = ({ data }) => b.postMessage(data);
        a.onmessage = ({ data }) => resolve(data);
        a.postMessage(value);
      });
    const oneWay = (value: unknown) =>
      new Promise((resolve) => {
        b.onmessage = ({ data }) => resolve(data);
        a.postMessage(value);
      });
    return { roundTrip: answer, send: (value) => a.postMessage(value), verbs: { large: oneWay } };
  },
};

const ADAPTERS: Readonly<Record<Library, Adapter>> = { port: PORT, sab: SAB, native: NATIVE };

/** Does what the order says, once, and times it. */
export async function runStart(order: StartOrder): Promise<StartReport> {
  const { library: name, url, what, value } = order;
  const adapter = ADAPTERS[name];
  if (what === "first-event") return { times: { [what]: await hearFirst(order) } };
  const start = performance.now();
  const library = await adapter.load(url);
  const imported = performance.now();
  const here = adapter.create(library);
  const created = performance.now();
  const [handoff, transfer] = adapter.handoff(here);
  if (what === "send") {
    await adapter.pair(here, undefined, url).send(value);
    return { times: {}, handoff, transfer };
  }
  const there = adapter.attach(library, handoff);
  const attached = performance.now();
  const pair = adapter.pair(here, there, url);
  check(value, await pair.roundTrip(value));
  const answered = performance.now();
  if (what !== "start") return { times: await timeVerb(pair, what, value) };
  return {
    times: {
      ...name === "native" ? {} : { import: imported - start },
      create: created - imported,
      attach: attached - created,
      "round-trip": answered - attached,
      sum: answered - start,
    },
  };
}

/** The time from where the handler is set to where it is called; the message is there. */
async function hearFirst({ library: name, url, value, handoff }: StartOrder): Promise<number> {
  const adapter = ADAPTERS[name];
  const port = adapter.attach(await adapter.load(url), handoff) as AnyPort;
  const start = performance.now();
  const heard = await new Promise((resolve) => port.onmessage = ({ data }) => resolve(data));
  const end = performance.now();
  check(value, heard);
  return end - start;
}

async function timeVerb(
  pair: Pair,
  verb: Verb,
  value: { readonly id: number },
): Promise<Record<string, number>> {
  const sent = verb === "large" ? { ...value, data: "d".repeat(1 << 20) } : value;
  const start = performance.now();
  const read = pair.verbs[verb]?.(sent);
  if (read === undefined) return {};
  const heard = await read;
  const end = performance.now();
  check(value, heard);
  return { [verb]: end - start };
}

function check(value: { readonly id: number }, heard: unknown): void {
  if ((heard as typeof value | undefined)?.id !== value.id) throw new Error("Nothing came back");
}
