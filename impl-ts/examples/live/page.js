/**
 * The page: starts the two workers, starts worker B again where it has died, and shows what worker
 * A measures. It takes no part in what is measured.
 *
 * @module
 */
import { Segment } from "millrace";
import { SharedProperties } from "millrace/property";
import { supervise } from "millrace/supervise";
import { slider } from "../slider.js";
import { bytes, count, duration, percent, ratio } from "../words.js";
import { Curve, medianOf } from "./curves.js";
import { PROPERTY_SIZE } from "./shared.js";

/** Bytes of a message, and round trips in a second; `null` is as many as go. */
const SIZES = [16, 64, 256, 1024, 4096, 16_384, 65_536];
const RATES = [100, 300, 1000, 3000, 10_000, null];
/** Rounds that a curve shows, and those whose median is in the table. */
const SHOWN = 60;
const RECENT = 20;

const element = (id) => document.getElementById(id);
const settings = { size: 64, rate: null, isRunning: true, floods: 0, deaths: 0 };
const rounds = [];
/** What has happened, for who drives the page from outside as well. */
const happened = { lives: 0, flood: undefined };
let live, asker, answerer, died;

/** Starts worker A, and with it what the two tell one another. */
function start() {
  const property = (writer) => ({ writer, size: PROPERTY_SIZE });
  live = SharedProperties.create({
    properties: { settings: property(0), round: property(1), flood: property(1) },
  });
  live.set("settings", settings);
  asker = new Worker("asker.js", { type: "module" });
  const { port1, port2 } = new MessageChannel();
  asker.onerror = fail;
  // It says where worker B has its place: at first, and whenever that place is free again.
  asker.onmessage = ({ data }) => startAnswerer(data.handoff);
  asker.rival = port2;
  asker.postMessage({ memory: live.memory, rival: port1 }, [port1]);
  watch();
}

/** Starts worker B, or its successor, and learns of its end. */
async function startAnswerer(handoff) {
  const lock = crypto.randomUUID();
  const worker = new Worker("answerer.js", { type: "module" });
  worker.onerror = fail;
  worker.onmessage = () => welcome();
  answerer = worker;
  const place = { segment: Segment.attach(handoff.memory), index: handoff.endpoint };
  const supervision = supervise(worker, place, { lock });
  worker.postMessage({ ...handoff, lock, rival: asker.rival }, [asker.rival]);
  await supervision.failed;
  tell(`Worker B is found dead, ${since()} later. Worker A gives its place back.`);
  const { port1, port2 } = new MessageChannel();
  asker.rival = port2;
  asker.postMessage({ rival: port1 }, [port1]);
  settings.deaths++;
  live.set("settings", settings);
}

function welcome() {
  happened.lives++;
  element("asking").textContent = "asks";
  element("answering").textContent = `answers · life ${happened.lives}`;
  element("answerer").classList.remove("dead");
  for (const id of ["run", "kill", "flood"]) element(id).disabled = false;
  if (happened.lives > 1) tell(`Worker B is back, ${since()} later, in the same memory.`);
}

function kill() {
  died = performance.now();
  element("kill").disabled = true;
  element("answerer").classList.add("dead");
  element("answering").textContent = "terminated";
  tell("Worker B is terminated.");
  answerer.terminate();
}

function since() {
  return duration((performance.now() - died) * 1000);
}

/** Takes what worker A has to say, as it comes. */
async function watch() {
  for await (const [name, value] of live.watch(["round", "flood"])) {
    if (name === "flood") showFlood(value);
    else if (value !== null) showRound(value);
  }
}

function showRound(round) {
  rounds.push(round);
  if (rounds.length > SHOWN) rounds.shift();
  const recent = rounds.filter(({ size, rate }) => size === round.size && rate === round.rate)
    .slice(-RECENT);
  showTable(recent);
  latency.draw(rounds, ({ trips: { p10, median, p90 } }) => ({ p10, median, p90 }));
  throughput.draw(rounds, ({ flow }) => ({ median: flow.perSecond }));
  const elidedOf = ({ wakes, elided }) => 100 * elided / Math.max(1, wakes + elided);
  elided.draw(rounds, (channel, each) => channel === each.millrace && { median: elidedOf(each) });
}

/** Medians of the last rounds with these settings, and how far they go apart. */
function showTable(recent) {
  const { millrace, rival, tick } = recent.at(-1);
  const row = (label, format, get, isLowBetter) => {
    const [a, b] = ["millrace", "rival"].map((name) => medianOf(recent.map((r) => get(r[name]))));
    return [label, format(a), format(b), isLowBetter ? ratio(b / a) : ratio(a / b)];
  };
  const band = (name) => {
    const [low, high] = ["p10", "p90"].map((p) => medianOf(recent.map((r) => r[name].trips[p])));
    return `${duration(low)} – ${duration(high)}`;
  };
  const wakes = recent.reduce((sum, each) => sum + each.wakes, 0);
  const spared = recent.reduce((sum, each) => sum + each.elided, 0);
  const all = [
    row("There and back, median", duration, ({ trips }) => trips.median, true),
    ["8 of 10 lie between", band("millrace"), band("rival"), ""],
    row("Round trips a second", count, ({ trips }) => trips.perSecond),
    row("One way, messages a second", count, ({ flow }) => flow.perSecond),
    row("One way, bytes a second", bytes, ({ flow }) => flow.bytesPerSecond),
    ["Wakes made, in all", count(wakes), "not known", ""],
    [
      "Wakes elided, in all",
      `${count(spared)} (${percent(spared / (wakes + spared))})`,
      "not known",
      "",
    ],
  ];
  element("figures").replaceChildren(...all.map(([label, ...cells]) => {
    const line = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = label;
    line.append(
      head,
      ...cells.map((text) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        return cell;
      }),
    );
    return line;
  }));
  const many = recent.length === 1 ? "one round" : `the last ${recent.length} rounds`;
  element("basis").textContent = `Medians of ${many} with these settings`;
  element("clock").textContent = `The clock of this browser moves in steps of ` +
    `${duration(tick * 1000)}. Trips that are shorter than ten of them are timed several at a ` +
    `time: now ${millrace.trips.lap} over Millrace, ${rival.trips.lap} over the MessagePort; the ` +
    `band is then that of their means. Where you ask for a rate, each is timed alone.`;
}

function showFlood(flood) {
  if (flood === null) return;
  const { count: all, sent, full, arrived, disordered, ms } = flood;
  element("progress").hidden = arrived !== undefined;
  element("progress").value = sent / all;
  if (arrived === undefined) return;
  element("flood").disabled = false;
  happened.flood = { ...flood, lost: sent - arrived };
  tell(
    `Flood: ${count(sent)} sent, ${count(arrived)} arrived, ${count(sent - arrived)} lost, ` +
      `${count(disordered)} out of order, in ${duration(ms * 1000)}. Worker A found the ring ` +
      `full ${count(full)} times, and waited.`,
  );
}

/** Adds a line to what has happened; the newest stands first. */
function tell(text) {
  const line = document.createElement("li");
  line.textContent = text;
  element("events").prepend(line);
  while (element("events").children.length > 8) element("events").lastChild.remove();
}

function fail({ message }) {
  element("trouble").textContent = `It does not run: ${message ?? "a worker did not start"}`;
}

function run(isRunning) {
  settings.isRunning = isRunning;
  element("run").textContent = isRunning ? "Pause" : "Go on";
  document.body.classList.toggle("running", isRunning);
  live.set("settings", settings);
}

const latency = new Curve(element("latency"), { name: "Round trip", format: duration });
const throughput = new Curve(element("throughput"), { name: "Messages a second", format: count });
const share = (value) => `${Math.floor(value)} %`;
const elided = new Curve(element("elided"), { name: "Wakes elided", format: share, isShare: true });
const wish = (name) => (value) => {
  settings[name] = value;
  live?.set("settings", settings);
};
slider("size", SIZES, settings.size, bytes, wish("size"));
const rateShown = (rate) => rate === null ? "as many as go" : count(rate);
slider("rate", RATES, settings.rate, rateShown, wish("rate"));
element("run").onclick = () => run(!settings.isRunning);
element("kill").onclick = kill;
element("flood").onclick = () => {
  element("flood").disabled = true;
  settings.floods++;
  live.set("settings", settings);
};
// While nobody looks, two processors have better things to do.
let isResting = false;
document.addEventListener("visibilitychange", () => {
  if (live === undefined || settings.isRunning !== document.hidden && !isResting) return;
  isResting = document.hidden;
  run(!document.hidden);
});

if (crossOriginIsolated) {
  start();
  run(true);
} else {
  fail({
    message: "this page is not cross-origin isolated; the guide says which headers it needs",
  });
}

/** For who drives the page from outside. */
globalThis.seen = () => ({ ...happened, rounds: rounds.length, last: rounds.at(-1) });
