/** Our fanout in mode `hold`: the slowest reader holds the writer back. @module */
import type { Scenario } from "../../contract.ts";
import { FanoutReader, FanoutWriter } from "../../../impl-ts/src/fanout/fanout.ts";
import type { FanoutHandoff } from "../../../impl-ts/src/fanout/fanout.ts";
import { CAPACITY, fanoutPeer, WAIT } from "../fanout_peer.ts";
import { valuesOf } from "../payload.ts";

export default fanoutPeer((scenario, readers) => {
  const options = { ...optionsOf(scenario), readers, capacity: CAPACITY };
  const writer = FanoutWriter.create<unknown>(options);
  const values = valuesOf(scenario);
  return {
    gears: Array.from({ length: readers }, (_, reader) => ({ value: writer.handoff(reader) })),
    turns: false,
    send: (number) => writer.write(values.with(number), WAIT),
    close: () => writer.close(),
  };
}, (gear, scenario) => {
  const reader = FanoutReader.from<unknown>(gear as FanoutHandoff, optionsOf(scenario));
  const values = valuesOf(scenario);
  return {
    kind: "blocking",
    receive: () => values.numberOf(reader.read(WAIT)),
    close: () => reader.close(),
  };
});

/** What an end of ours is made with. */
export function optionsOf({ format, wait }: Scenario) {
  const codec = format === "bytes" ? "bytes" : "json";
  return { codec, ...wait === "park" ? { spin: 0 } : {} } as const;
}
