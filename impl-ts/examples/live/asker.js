/**
 * Worker A: measures. In each round it asks worker B over Millrace and over a `MessagePort`, first
 * there and back, then one way, so that both meet the same machine within the same second.
 *
 * @module
 */
import { PeerFailedError, Port, statsOf } from "millrace";
import { SharedProperties } from "millrace/property";
import { revive } from "millrace/revive";
import { Laps, tickOf } from "./laps.js";
import { CAPACITY, FLOOD_COUNT, FLOOD_SIZE, PHASE_MS } from "./shared.js";
import { WINDOW_COUNT, WINDOW_SIZE } from "./shared.js";

/** Tells the event loop's half that worker B is gone: a `MessagePort` does not. */
class GoneError extends Error {}

/** Worker B, as this end has it; a new port for each successor of it. */
let port = Port.create({ capacity: CAPACITY });
let rival;
/** Refuses what waits for an answer over the `MessagePort`. */
let refuse = () => {};
/** Of worker B: that it has gone, and what its successor brings. */
let gone = Promise.withResolvers();
let generation = 0;
const tick = tickOf(performance);
const laps = { millrace: new Laps(tick), rival: new Laps(tick) };

self.onmessage = ({ data }) => {
  if (data.memory === undefined) {
    gone.resolve(data.rival);
    return refuse(new GoneError());
  }
  rival = data.rival;
  self.postMessage({ handoff: port.handoff() });
  run(SharedProperties.attach(data.memory));
};

async function run(live) {
  let floods = 0;
  // The first round is not shown: in it the compilers get to know the code, and the laps how long a
  // trip takes.
  let isWarm = false;
  for (;;) {
    const settings = live.get("settings");
    try {
      if (settings.deaths > generation) {
        await recover();
      } else if (settings.floods > floods) {
        flood(live);
        floods++;
      } else if (settings.isRunning) {
        const figures = await round(settings);
        if (isWarm) live.set("round", figures);
        isWarm = true;
      } else {
        await live.waitAsync(["settings"]);
      }
    } catch (error) {
      if (!(error instanceof PeerFailedError || error instanceof GoneError)) throw error;
      await recover();
    }
  }
}

/** Gives the place of worker B back, for the next one: the ring between them stays as it is. */
async function recover() {
  rival = await gone.promise;
  gone = Promise.withResolvers();
  try {
    while (port.read() !== undefined);
  } catch (error) {
    if (!(error instanceof PeerFailedError)) throw error;
  }
  port = revive(port);
  generation++;
  self.postMessage({ handoff: port.handoff() });
}

/** All four measurements, once. */
async function round({ size, rate }) {
  const message = new Uint8Array(size).map((_, i) => i);
  const before = statsOf(port);
  const started = report("trips").stats;
  const trips = measureTrips(message, rate);
  port.write({ task: "flow" });
  const flow = measureFlow(message);
  const { stats } = report("rival");
  const after = statsOf(port);
  const rivalTrips = await measureRivalTrips(message, rate);
  const rivalFlow = await measureRivalFlow(message);
  rival.postMessage({ task: "end" });
  const both = (name) => after[name] - before[name] + stats[name] - started[name];
  return {
    size,
    rate,
    generation,
    tick,
    millrace: { trips, flow },
    rival: { trips: rivalTrips, flow: rivalFlow },
    wakes: both("wakes"),
    elided: both("wakesElided"),
  };
}

/** What worker B has to say of the task before; then comes the next one. */
function report(task) {
  port.write({ task: "report" });
  const said = port.read();
  port.write({ task });
  return said;
}

/** One at a time; both threads wait in the ring. */
function measureTrips(message, rate) {
  const times = laps.millrace.begin(rate, PHASE_MS);
  while (times.next()) {
    for (let i = 0; i < times.count; i++) {
      port.write(message);
      port.read();
    }
  }
  return times.figures();
}

/** One at a time; both threads wait in their event loops. */
async function measureRivalTrips(message, rate) {
  rival.postMessage({ task: "trips" });
  const times = laps.rival.begin(rate, PHASE_MS);
  while (times.next()) {
    for (let i = 0; i < times.count; i++) await ask(message);
  }
  return times.figures();
}

function ask(message) {
  return new Promise((resolve, reject) => {
    refuse = reject;
    rival.onmessage = ({ data }) => resolve(data);
    rival.postMessage(message);
  });
}

/** As many as go; where the ring is full, `write` waits. */
function measureFlow(message) {
  const start = performance.now();
  while (performance.now() - start < PHASE_MS) {
    for (let i = 0; i < 16; i++) port.write(message);
  }
  port.write({ task: "report" });
  const { count } = port.read();
  return perSecond(count, message, performance.now() - start);
}

/**
 * As many as go. Nothing but this code holds the sender back: no more than two halves of a window
 * are under way, or they would pile up in memory.
 */
async function measureRivalFlow(message) {
  const half = Math.max(8, Math.min(WINDOW_COUNT, WINDOW_SIZE / message.length) / 2);
  let [sent, counted, wanted] = [0, 0, 0];
  let arrive = () => {};
  const countedTo = (count) =>
    new Promise((resolve, reject) => {
      [wanted, arrive, refuse] = [count, resolve, reject];
      if (counted >= wanted) resolve();
    });
  rival.onmessage = ({ data }) => {
    counted = data.count;
    if (counted >= wanted) arrive();
  };
  rival.postMessage({ task: "flow" });
  const start = performance.now();
  while (performance.now() - start < PHASE_MS) {
    for (let i = 0; i < half; i++, sent++) rival.postMessage(message);
    rival.postMessage({ task: "report" });
    await countedTo(sent - half);
  }
  await countedTo(sent);
  return perSecond(sent, message, performance.now() - start);
}

function perSecond(count, { length }, ms) {
  return { perSecond: count * 1000 / ms, bytesPerSecond: count * length * 1000 / ms };
}

/** More than fits, to a reader that is slower: `write` waits, and each one arrives. */
function flood(live) {
  const message = new Uint8Array(FLOOD_SIZE);
  const number = new Uint32Array(message.buffer, 0, 1);
  const start = performance.now();
  const tell = (more) => live.set("flood", { count: FLOOD_COUNT, ...more });
  let [sent, full] = [0, 0];
  report("flood");
  for (; sent < FLOOD_COUNT; sent++) {
    number[0] = sent;
    if (sent % 1000 === 0) tell({ sent, full });
    if (port.tryWrite(message)) continue;
    full++;
    port.write(message);
  }
  const { arrived, disordered } = report("trips");
  tell({ sent, full, arrived, disordered, ms: performance.now() - start });
}
