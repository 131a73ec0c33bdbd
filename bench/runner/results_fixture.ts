import { type Results, RESULTS_VERSION, type Row, type ScenarioInfo } from "./results.ts";

/** The results of a full run that never was. */
export function madeUp(scenarios: readonly ScenarioInfo[], rows: readonly Row[]): Results {
  return {
    version: RESULTS_VERSION,
    started: "2026-01-01T00:00:00.000Z",
    effort: "full",
    machine: {
      id: "a",
      processor: "",
      processors: 2,
      memory_gb: 1,
      system: "",
      load: [0, 0],
      busy_percent: 0,
      steal_percent: 0,
    },
    drivers: [],
    complete: true,
    seconds: 1,
    scenarios,
    rows,
  };
}
