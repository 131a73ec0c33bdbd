/**
 * The page: starts the two workers, and shows what their meters say, once a second.
 *
 * @module
 */
import { SharedProperties } from "millrace/property";
import { look } from "../../../conformance/top/look.ts";
import { figuresOf } from "../../../conformance/top/rates.ts";
import { view } from "../../../conformance/top/view.ts";
import { slider } from "../slider.js";
import { bytes, count, duration, percent } from "../words.js";
import { REPORT_MS } from "./shared.js";

const RATES = [10, 100, 1000, 10_000, 100_000, 10_000_000];
/** Microseconds for each message. */
const SERVICES = [0, 20, 50, 100, 500, 1000, 5000, 20_000];

const element = (id) => document.getElementById(id);
const knobs = SharedProperties.create({
  properties: { rate: { writer: 0 }, service: { writer: 0 } },
  endpoints: 3,
});
/** The last snapshots, and the memory that they are about. */
const last = { sender: undefined, handler: undefined };
let memory, before;

function start() {
  const sender = new Worker("sender.js", { type: "module" });
  const handler = new Worker("handler.js", { type: "module" });
  for (const worker of [sender, handler]) worker.onerror = fail;
  sender.onmessage = ({ data: { handoff, snapshot } }) => {
    if (snapshot !== undefined) last.sender = snapshot;
    if (handoff === undefined) return;
    memory = handoff.memory;
    handler.postMessage({ handoff, memory: knobs.memory });
  };
  handler.onmessage = ({ data: { snapshot } }) => last.handler = snapshot;
  sender.postMessage({ memory: knobs.memory });
  setInterval(show, REPORT_MS);
}

function show() {
  if (memory !== undefined) showOutside();
  const { sender, handler } = last;
  if (sender === undefined || handler === undefined) return;
  showTable(sender, handler);
  showTimes(handler.incoming);
  element("verdict").textContent = verdict(sender.outgoing, handler.incoming);
}

function showTable({ outgoing, endpoint }, { incoming, endpoint: other }) {
  const { waiting, service, queue } = incoming;
  const rows = [
    ["Messages a second", count(outgoing.messageRate), count(incoming.valueRate)],
    ["Bytes a second", bytes(outgoing.byteRate), bytes(incoming.byteRate)],
    ["Queue, messages", "", count(queue.messages)],
    ["Queue, bytes", count(outgoing.queue.bytes), count(queue.bytes)],
    ["Found no room", count(outgoing.stalls), ""],
    ["Waited for room, median", outgoing.stalls > 0 ? duration(outgoing.stall.p50) : "–", ""],
    ["Waiting, median", "", duration(waiting.p50)],
    ["Waiting, 99 of 100 within", "", duration(waiting.p99)],
    ["Service, median", "", duration(service.p50)],
    ["Service, 99 of 100 within", "", duration(service.p99)],
    ["Busy with messages", "", percent(busy(incoming))],
    ["Wakes made", count(endpoint.wakes), count(other.wakes)],
    ["Wakes elided", count(endpoint.elidedWakes), count(other.elidedWakes)],
    ["Sleeps", count(endpoint.sleeps), count(other.sleeps)],
  ];
  element("figures").replaceChildren(...rows.map(([label, ...cells]) => {
    const line = document.createElement("tr");
    const head = Object.assign(document.createElement("th"), { scope: "row", textContent: label });
    const make = (textContent) => Object.assign(document.createElement("td"), { textContent });
    line.append(head, ...cells.map(make));
    return line;
  }));
}

/** The part of the time in which the handler was at work. */
function busy({ service, valueRate }) {
  return Math.min(1, service.mean * valueRate / 1e6);
}

/** What the figures mean, in a sentence. */
function verdict({ stalls, stall }, incoming) {
  const part = busy(incoming);
  const share = `${Math.round(100 * part)} % of the time`;
  const { waiting, service } = incoming;
  if (waiting.count === 0) return "No message came within the last second.";
  if (stalls > 0 && part > 0.5) {
    return `The handler is the bottleneck: it is busy ${share}, the ring is ` +
      `full, and the sender waits ${duration(stall.p50)} for room.`;
  }
  if (stalls > 0) return "Both go as fast as they can: the ring is full now and then.";
  if (waiting.p50 > 4 * service.p50 && part > 0.7) {
    return `The handler keeps up, but only just: messages wait ${duration(waiting.p50)} for it.`;
  }
  return `There is room: the handler works ${share}, and a message waits ` +
    `${duration(waiting.p50)} until it is asked for${part < 0.5 ? ", mostly for a wake" : ""}.`;
}

/** A bar for each step of time, of 100 messages. */
function showTimes({ waiting, service }) {
  const stepsOf = ({ buckets, count: all }) =>
    buckets.map(([most, sum], index) => {
      return [most, 100 * (sum - (buckets[index - 1]?.[1] ?? 0)) / Math.max(1, all)];
    });
  const [waits, services] = [stepsOf(waiting), stepsOf(service)];
  element("times").replaceChildren(
    ...waits.map(([most, part], index) => {
      const step = document.createElement("div");
      for (const height of [part, services[index][1]]) {
        const bar = document.createElement("i");
        bar.style.height = `${height}%`;
        step.append(bar);
      }
      const power = Math.log10(most);
      if (power % 1 === 0) {
        const text = document.createElement("span");
        text.textContent = duration(most);
        text.className = power % 2 === 0 ? "" : "minor";
        step.append(text);
      }
      return step;
    }),
  );
  const said = (name, { p50, p99 }) => `${name}: median ${duration(p50)}, most ${duration(p99)}`;
  element("times").ariaLabel = `${said("Waiting", waiting)}; ${said("service", service)}`;
}

/** As `./millrace top` does it. */
function showOutside() {
  const live = {
    size: () => memory.byteLength,
    read: (offset, size) => new Uint8Array(memory, offset, size).slice(),
  };
  const now = look(live, Date.now());
  element("outside").textContent = view(figuresOf(now, before), "The port").trimEnd();
  before = now;
}

function fail({ message }) {
  element("trouble").textContent = `It does not run: ${message ?? "a worker did not start"}`;
}

const wish = (name) => (value) => knobs.set(name, value);
slider("rate", RATES, 1000, (rate) => rate > 1e6 ? "as many as go" : count(rate), wish("rate"));
slider("service", SERVICES, 20, (us) => us === 0 ? "none" : duration(us), wish("service"));

if (crossOriginIsolated) start();
else {fail({
    message: "this page is not cross-origin isolated; the guide says which headers it needs",
  });}

/** For who drives the page from outside. */
globalThis.seen = () => last;
