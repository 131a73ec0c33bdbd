/**
 * The calls of the TypeScript implementation: the methods that the kit asks for, and the calls that
 * it has made. A call that nobody waits for is made by the layer below `remote`, whose calls are
 * promises, or wait.
 *
 * @module
 */

import {
  callContext,
  CallError,
  type Remote,
  remote,
  serve,
} from "../../../impl-ts/src/call/call.ts";
import type { OwnCall } from "../../../impl-ts/src/call/caller.ts";
import { CallLayer } from "../../../impl-ts/src/call/layer.ts";
import { MillraceError, type Port } from "../../../impl-ts/src/mod.ts";
import { tendSoon } from "../../../impl-ts/src/pipe/tend.ts";
import { Transcript } from "../../kit/crc32.ts";
import type { Opening, Ran, TreeTask, Wait } from "../../kit/protocol.ts";
import { Branch, type Child, folded, Random, valueOf } from "../../kit/live/workload.ts";
import { fromHex } from "../../reference/bytes.ts";
import type { Settled, Value } from "../../reference/case.ts";
import { type Calling, packHex } from "../server.ts";

/** What any peer may serve. */
type Any = Record<string, (...values: unknown[]) => unknown>;

/** The other side of a tree. */
interface Trees {
  tree(seed: number, depth: number, width: number): number;
}

const HOLD_MS = 1;

/** The calls of one port. */
export class Calls implements Calling {
  readonly #port: Port<unknown>;
  readonly #layer: CallLayer;
  readonly #far: Remote<Any>;
  readonly #trees: Remote<Trees>;
  /** By number; undefined for one that has failed at once. */
  readonly #calls: (OwnCall | undefined)[];
  readonly #notes: unknown[] = [];
  #held = 0;
  #told = 0;
  /** How the methods wait that call back. */
  #wait: Wait;
  /** Those of the port that had the same place before its peer was vacated. */
  readonly #before: Calls | undefined;

  constructor(
    port: Port<unknown>,
    { methods = true, first_id }: Opening,
    wait: Wait = "block",
    before?: Calls,
  ) {
    this.#before = before;
    this.#calls = before === undefined ? [] : before.#calls;
    this.#port = port;
    this.#wait = wait;
    this.#layer = CallLayer.of(port);
    this.#layer.isAttending = false;
    if (first_id !== undefined) this.#layer.caller.lastId = first_id - 1;
    this.#far = remote<Any>(port);
    this.#trees = remote<Trees>(port);
    if (methods) serve(port, this.#methods());
  }

  /** Whether the event loop takes calls by itself. */
  #attend(on: boolean): void {
    this.#layer.isAttending = on;
    tendSoon(this.#port.link);
  }

  call(name: string, values: Value[], items: boolean): void {
    const index = this.#calls.push(undefined) - 1;
    this.#layer.requireOpen();
    this.#calls[index] = this.#layer.caller.call(name, values.map(valueIn), items, true);
  }

  async ask(
    name: string,
    values: Value[],
    timeout: number,
    wait: Wait = this.#wait,
  ): Promise<Settled> {
    this.#calls.push(undefined);
    const far = this.#far.with({ timeout });
    const list = values.map(valueIn);
    this.#attend(wait === "event");
    try {
      return returned(wait === "event" ? await far[name]!(...list) : far.sync[name]!(...list));
    } catch (error) {
      return failed(error);
    } finally {
      this.#attend(false);
    }
  }

  notify(name: string, values: Value[]): void {
    this.#layer.requireOpen();
    this.#layer.caller.notify(name, values.map(valueIn), () => {});
  }

  giveUp(index: number): void {
    const call = this.#calls[index];
    if (call !== undefined) this.#layer.caller.giveUp(call, ABORTED);
  }

  outcome(index: number): Settled {
    const call = this.#calls[index];
    if (!call?.isOver) return { outcome: "pending" };
    return call.hasFailed ? failed(call.result) : returned(call.result);
  }

  item(index: number): Settled {
    const call = this.#calls[index]!;
    if (call.items.length === 0) return this.outcome(index);
    return { ...returned(this.#layer.caller.takeItem(call)), outcome: "item" };
  }

  told(): number {
    return this.#told + (this.#before?.told() ?? 0);
  }

  async run(task: TreeTask, timeout: number): Promise<Ran> {
    const { seed, count, depth, width, wait, plain, then } = task;
    const port = this.#port;
    const transcript = new Transcript(task.record ?? false);
    const isBlocking = wait !== "event";
    this.#wait = wait;
    this.#attend(!isBlocking);
    const far = this.#trees.with({ timeout });
    const random = new Random(seed);
    let end = "ended";
    try {
      for (let index = 0; index < count; index++) {
        if (plain) await this.#write(wordOf(index), timeout, isBlocking);
        const root = random.next();
        const value = await valueOfTree(() =>
          isBlocking ? far.sync.tree(root, depth, width) : far.tree(root, depth, width)
        );
        transcript.add(index, wordOf(value));
      }
      await this.#write(new Uint8Array(0), timeout, isBlocking);
      await this.#readRest(transcript, timeout, isBlocking);
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      end = error.code;
    } finally {
      this.#attend(false);
    }
    if (then === "close") port.close();
    const { count: seen, size, crc32, record } = transcript;
    return { count: seen, size, crc32, end, ...(record && { record }) };
  }

  async #write(payload: Uint8Array, timeout: number, isBlocking: boolean): Promise<void> {
    if (isBlocking) this.#port.write(payload, { timeout });
    else await this.#port.writeAsync(payload, { timeout });
  }

  /** Reads plain messages up to an empty one, ends the own stream, and reads the other's end. */
  async #readRest(transcript: Transcript, timeout: number, isBlocking: boolean): Promise<void> {
    const port = this.#port;
    const read = () => isBlocking ? port.read({ timeout }) : port.readAsync({ timeout });
    for (let index = 0;; index++) {
      const payload = await read();
      if (!(payload instanceof Uint8Array)) throw new CallError("wait.timeout", "no more came");
      if (payload.length === 0) break;
      transcript.add(0, payload);
    }
    if (isBlocking) port.end();
    else await port.endAsync({ timeout });
    while (!port.ended) {
      if (await read() === undefined && !port.ended) {
        throw new CallError("wait.timeout", "no end came");
      }
    }
  }

  #methods() {
    return {
      identity: (value: unknown) => value,
      add(a: unknown, b: unknown) {
        if (typeof a === "number" && typeof b === "number") return a + b;
        throw new CallError("call.arguments", "two numbers");
      },
      fail(name: string, text: string, data: unknown) {
        throw Object.assign(new Error(text), { name, data });
      },
      odd: () => () => {},
      *count(count: number) {
        for (let item = 0; item < count; item++) yield item;
        return count;
      },
      hold: () => this.#hold(),
      held: () => this.#held,
      note: (value: unknown) => void this.#notes.push(value),
      noted: () => this.#notes,
      ask: (name: string, ...values: unknown[]) =>
        this.#wait === "event" ? this.#far[name]!(...values) : this.#far.sync[name]!(...values),
      tree: (seed: number, depth: number, width: number) => this.#tree(seed, depth, width),
    };
  }

  /** Answers at once when it is told, also while this thread blocks: no promise does that. */
  #hold(): PromiseLike<void> {
    this.#held++;
    const { signal } = callContext()!;
    const answered = (done: (value: void) => unknown) =>
      signal.addEventListener("abort", () => {
        this.#held--;
        this.#told++;
        done();
      });
    return { then: answered } as unknown as PromiseLike<void>;
  }

  #tree(seed: number, depth: number, width: number): number | Promise<number> {
    const branch = new Branch(seed, depth, width);
    if (this.#wait === "event") return this.#treeLater(branch, depth, width);
    for (let child = branch.next(); child !== undefined; child = branch.next()) {
      const { seed: root } = child;
      branch.add(
        child.way === "tree"
          ? dataOf(() => this.#trees.sync.tree(root, depth - 1, width))
          : this.#otherNow(child),
      );
    }
    return concluded(branch);
  }

  async #treeLater(branch: Branch, depth: number, width: number): Promise<number> {
    for (let child = branch.next(); child !== undefined; child = branch.next()) {
      const { way, seed } = child;
      const tree = () => this.#trees.tree(seed, depth - 1, width);
      branch.add(way === "tree" ? await valueOfTree(tree) : await this.#otherLater(child));
    }
    return concluded(branch);
  }

  /** A child that is no tree, whose end is checked. */
  #otherNow(child: Child): number {
    const { sync, notify } = this.#far.with({});
    if (child.way === "note") void notify.note!(child.seed);
    else if (child.way === "hold") {
      expectCode("wait.timeout", codeNow(() => this.#far.with({ timeout: HOLD_MS }).sync.hold!()));
    } else if (child.way === "none") expectCode("call.method", codeNow(() => sync.none!()));
    else return dataNow(() => sync.fail!("Tree", "", child.seed));
    return valueOf(child);
  }

  async #otherLater(child: Child): Promise<number> {
    const far = this.#far;
    const code = (promise: unknown) =>
      (promise as Promise<unknown>).then(() => "none", (error) => error.code);
    if (child.way === "note") void far.notify.note!(child.seed);
    else if (child.way === "hold") {
      expectCode("wait.timeout", await code(far.with({ timeout: HOLD_MS }).hold!()));
    } else if (child.way === "none") expectCode("call.method", await code(far.none!()));
    else {
      const thrown = await (far.fail!("Tree", "", child.seed) as Promise<unknown>)
        .then(() => undefined, (error) => error);
      return treeDataOf(thrown);
    }
    return valueOf(child);
  }
}

/** What a call ends with that its signal has given up. */
const ABORTED = /* @__PURE__ */ Symbol("aborted");

function concluded(branch: Branch): number {
  const { sum, fails } = branch.end();
  if (fails) throw Object.assign(new Error(""), { name: "Tree", data: sum });
  return sum;
}

/** The data of a failed tree; throws anything else again. */
function treeDataOf(error: unknown): number {
  if (error instanceof CallError && error.remoteName === "Tree") return error.data as number;
  throw error;
}

function dataNow(call: () => unknown): number {
  try {
    call();
  } catch (error) {
    return treeDataOf(error);
  }
  throw new Error("it did not fail");
}

function dataOf(tree: () => number): number {
  try {
    return tree();
  } catch (error) {
    return folded({ sum: treeDataOf(error), fails: true });
  }
}

async function valueOfTree(tree: () => number | Promise<number>): Promise<number> {
  try {
    return await tree();
  } catch (error) {
    return folded({ sum: treeDataOf(error), fails: true });
  }
}

function codeNow(call: () => unknown): string {
  try {
    call();
    return "none";
  } catch (error) {
    return (error as MillraceError).code;
  }
}

function expectCode(wanted: string, code: string): void {
  if (code !== wanted) throw new Error(`${wanted} was to come, not ${code}`);
}

function wordOf(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function valueIn(value: Value): unknown {
  if ("text" in value) return value.text;
  if ("json" in value) return value.json;
  if ("hex" in value) return fromHex(value.hex as string);
  return undefined;
}

function valueOut(value: unknown): Value {
  if (value === undefined) return {};
  return value instanceof Uint8Array ? { hex: packHex(value) } : { json: value };
}

function returned(value: unknown): Settled {
  return { outcome: "returned", ...(value !== undefined && { value: valueOut(value) }) };
}

function failed(error: unknown): Settled {
  if (error === ABORTED) return { outcome: "wait.aborted" };
  if (!(error instanceof MillraceError)) throw error;
  if (!(error instanceof CallError) || error.code !== "call.thrown") {
    return { outcome: error.code };
  }
  const { remoteName = "", message, data } = error;
  const thrown = { name: remoteName, text: message };
  return {
    outcome: error.code,
    error: data === undefined ? thrown : { ...thrown, data: valueOut(data) },
  };
}
