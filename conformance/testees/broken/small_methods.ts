/**
 * The small port: the methods that the kit calls, and the calls that it has the port make.
 *
 * @module
 */

import { Transcript } from "../../kit/crc32.ts";
import type { Ran, TreeTask } from "../../kit/protocol.ts";
import { Branch, folded, valueOf } from "../../kit/tree.ts";
import { Random } from "../../kit/workload.ts";
import type { Settled as Told, Value } from "../../reference/case.ts";
import type { Calling } from "../server.ts";
import { LATER, type Method, Thrown } from "./small_callee.ts";
import type { Call, Settled } from "./small_caller.ts";
import { PortError } from "./small_memory.ts";
import type { Port } from "./small_port.ts";
import { fromKit, ODD, type Plain, toKit } from "./small_values.ts";

/** How long a call may wait for room that does not wait for its answer. */
const WRITE_MS = 1_000;
/** How long the peer of a tree is waited for. */
const HOLD_MS = 1;

/** What a handle of the kit keeps. */
export class Kit implements Calling {
  readonly #port: Port;
  readonly #calls: (Call | undefined)[] = [];
  readonly #notes: Plain[] = [];
  #held = 0;
  #told = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** What the port serves. */
  get methods(): ReadonlyMap<string, Method> {
    return new Map<string, Method>([
      ["identity", (_, [value]) => value],
      ["add", (_, [a, b]) => add(a, b)],
      ["fail", (_, [name, text, data]) => {
        throw new Thrown(name as string, text as string, data);
      }],
      ["odd", () => ODD],
      ["count", (served, [count]) => this.#port.callee.sendPieces(served, count as number)],
      ["hold", (served) => {
        this.#held++;
        served.onTold = () => {
          this.#held--;
          this.#told++;
          this.#port.callee.giveUp(served);
        };
        return LATER;
      }],
      ["held", () => this.#held],
      ["note", (_, [value]) => void this.#notes.push(value)],
      ["noted", () => this.#notes],
      ["ask", (_, [name, ...args]) => valueIn(this.#port.ask(name as string, args, Infinity))],
      [
        "tree",
        (_, [seed, depth, width]) =>
          this.#grow(
            new Branch(seed as number, depth as number, width as number),
            depth as number,
            width as number,
          ),
      ],
    ]);
  }

  call(name: string, values: Value[], items: boolean): void {
    this.#calls.push(undefined);
    this.#calls[this.#calls.length - 1] = this.#port.call(
      name,
      values.map(fromKit),
      items,
      WRITE_MS,
    );
  }

  ask(name: string, values: Value[], timeoutMs: number): Told {
    this.#calls.push(undefined);
    return toTold(this.#port.ask(name, values.map(fromKit), timeoutMs));
  }

  notify(name: string, values: Value[]): void {
    this.#port.notify(name, values.map(fromKit), WRITE_MS);
  }

  giveUp(call: number): void {
    this.#port.caller.giveUp(this.#calls[call]!, "wait.aborted");
  }

  outcome(call: number): Told {
    return toTold(this.#calls[call]!.settled);
  }

  item(call: number): Told {
    const taken = this.#port.caller.take(this.#calls[call]!);
    return taken === undefined ? this.outcome(call) : valued("item", taken.item);
  }

  told(): number {
    return this.#told;
  }

  /** Makes trees of calls, and serves those of the other side. */
  run({ seed, count, depth, width, plain, record: keeps }: TreeTask, timeoutMs: number): Ran {
    const transcript = new Transcript(keeps);
    let end = "ended";
    try {
      const random = new Random(seed);
      for (let index = 0; index < count; index++) {
        if (plain) this.#write(word(index), timeoutMs);
        const value = treeValue(this.#port.ask("tree", [random.next(), depth, width], timeoutMs));
        transcript.add(index, word(value));
      }
      this.#write(new Uint8Array(0), timeoutMs);
      for (let next = this.#read(timeoutMs); next.length > 0; next = this.#read(timeoutMs)) {
        transcript.add(0, next);
      }
      this.#port.end();
      if (this.#port.read(timeoutMs) !== "ended") end = "wait.timeout";
    } catch (error) {
      if (error instanceof Thrown) end = "call.thrown";
      else if (error instanceof PortError) end = error.code;
      else throw error;
    }
    const { size, crc32, record } = transcript;
    return { count: transcript.count, size, crc32, end, ...(record && { record }) };
  }

  #write(payload: Uint8Array, timeoutMs: number): void {
    this.#port.write({ kind: 1, codec: 0, tag: 0, payload }, timeoutMs);
  }

  #read(timeoutMs: number): Uint8Array {
    const message = this.#port.read(timeoutMs);
    if (typeof message === "object") return message.payload!;
    throw new PortError(message ?? "wait.timeout");
  }

  #grow(branch: Branch, depth: number, width: number): number {
    for (let child = branch.next(); child !== undefined; child = branch.next()) {
      const { way, seed } = child;
      const ask = (name: string, args: Plain[], timeoutMs = Infinity) =>
        this.#port.ask(name, args, timeoutMs);
      if (way === "tree") {
        branch.add(treeValue(ask("tree", [seed, depth - 1, width])));
        continue;
      }
      if (way === "note") this.#port.notify("note", [seed], WRITE_MS);
      else if (way === "hold") demand(ask("hold", [], HOLD_MS), "wait.timeout");
      else if (way === "none") demand(ask("none", []), "call.method");
      else demand(ask("fail", ["Tree", "", seed]), "call.thrown", seed);
      branch.add(valueOf(child));
    }
    const { sum, fails } = branch.end();
    if (fails) throw new Thrown("Tree", "", sum);
    return sum;
  }
}

function add(a: Plain, b: Plain): number {
  if (typeof a !== "number" || typeof b !== "number") throw new PortError("call.arguments");
  return a + b;
}

/** The value that a call gave; throws as it failed. */
function valueIn(settled: Settled): Plain {
  if ("value" in settled) return settled.value;
  const { code, name, text, data } = settled;
  throw code === "call.thrown" ? new Thrown(name!, text!, data) : new PortError(code);
}

/** What stands for a tree that was called. */
function treeValue(settled: Settled): number {
  const isTree = settled.code === "call.thrown" && "name" in settled && settled.name === "Tree";
  if (isTree && "data" in settled && typeof settled.data === "number") {
    return folded({ sum: settled.data, fails: true });
  }
  const sum = valueIn(settled);
  if (typeof sum !== "number") throw new PortError("call.form");
  return folded({ sum, fails: false });
}

/** Throws unless a call has ended so. */
function demand(settled: Settled, code: string, data?: number): void {
  const isGood = settled.code === code && ("data" in settled ? settled.data : undefined) === data;
  if (!isGood) throw new PortError(settled.code === "returned" ? "call.form" : settled.code);
}

function word(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

/** What the kit is told of a call. */
function toTold(settled: Settled | undefined): Told {
  if (settled === undefined) return { outcome: "pending" };
  if ("value" in settled) return valued("returned", settled.value);
  const { code, name, text, data } = settled;
  if (code !== "call.thrown") return { outcome: code };
  const error = { name: `${name}`, text: `${text}` };
  return { outcome: code, error: data === undefined ? error : { ...error, data: toKit(data) } };
}

function valued(outcome: string, value: Plain): Told {
  return value === undefined ? { outcome } : { outcome, value: toKit(value) };
}
