/**
 * Scripts for a reader: the kit is a slow writer, one that leaves, and one that lies.
 *
 * @module
 */

import { ATTACHED, CLOSED, drained, message, pipe, VACANT } from "../../reference/builder.ts";
import { endFrame, firstOf, part, pattern, whole } from "../../reference/builder.ts";
import type { Result as Came } from "../../reference/case.ts";
import { failed, type FramePlan } from "../../reference/encode.ts";
import { perform } from "../../static/driver.ts";
import { toHex } from "../../reference/bytes.ts";
import { counted, type Script, Stage } from "./stage.ts";

const CAPACITY = 256;
const LATE = 2 ** 32 - 96;
const STARTS = [0, LATE];
const SIZE = 24;
const EXTENSION: FramePlan = { kind: 200, flags: 7, payload: pattern(20) };

function onStage(
  arena: Parameters<Script["play"]>[0],
  start: number,
  play: (stage: Stage) => Promise<void>,
  capacity = CAPACITY,
): Promise<void> {
  const memory = pipe({ capacity, start, states: [ATTACHED, VACANT] });
  return Stage.with(arena, "reader", memory, { limit: 4096 }, play);
}

/** Reads until nothing comes, and twice then. */
function drain(stage: Stage): Promise<Came> {
  return perform({ read: true }, stage.session, stage.memory, undefined);
}

function small(tag: number, size = 20): FramePlan {
  return whole(Uint8Array.from({ length: size }, (_, index) => tag + index & 255), { tag });
}

function smallItem(tag: number, size = 20) {
  return message({ tag, hex: counted(size, tag) });
}

export const READER_SCRIPTS: Script[] = [
  {
    id: "scripted/slow_writer",
    about: "A writer that publishes one message at a time, twice around the area and around 2^32.",
    clauses: ["ring.release_all", "ring.head_owner", "ring.acquire", "frame.skip"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, slowWriter);
    },
  },
  {
    id: "scripted/split_everywhere",
    about:
      "A message cut at every byte, published at once, frame by frame, and with others between.",
    clauses: ["frame.multipart", "pipe.keep_parts", "pipe.drop_parts", "frame.skip", "frame.check"],
    role: "reader",
    async play(arena) {
      await onStage(arena, LATE, splitEverywhere, 1024);
    },
  },
  {
    id: "scripted/writer_asks",
    about:
      "A writer that asks at every distance: it is rung when `head` gets there, and only then.",
    clauses: ["wait.exchange", "wait.ring", "ring.release_all"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) await onStage(arena, start, writerAsks);
    },
  },
  {
    id: "scripted/writer_leaves_at_every_step",
    about:
      "A writer that ends, closes or fails behind any number of messages: all of them are read.",
    clauses: ["pipe.drain", "pipe.end_once", "pipe.look_again", "pipe.failed_reason"],
    role: "reader",
    async play(arena) {
      for (let count = 0; count <= 6; count++) {
        for (const how of ["end", "close", "fail"] as const) {
          await onStage(arena, LATE, (stage) => leaves(stage, count, how));
        }
      }
    },
  },
  {
    id: "scripted/reader_closes_at_every_step",
    about: "The reader closes behind any number of messages: it stores nothing any more.",
    clauses: ["pipe.close", "pipe.close_stores", "pipe.first_answer", "ring.head_owner"],
    role: "reader",
    async play(arena) {
      for (let count = 0; count <= 4; count++) {
        await onStage(arena, 0, (stage) => closes(stage, count));
      }
    },
  },
  {
    id: "scripted/cancel_at_every_step",
    about: "A message that is given up behind any number of its parts, or cut short by `end`.",
    clauses: ["pipe.cancelled", "pipe.truncated", "pipe.report_once"],
    role: "reader",
    async play(arena) {
      for (let parts = 1; parts <= 4; parts++) {
        await onStage(arena, LATE, (stage) => givenUp(stage, parts), 1024);
      }
    },
  },
  {
    id: "scripted/lying_writer",
    about: "Every kind of bad `tail`: the writer is marked, and `head` is not stored any more.",
    clauses: ["ring.cursor", "ring.fault", "ring.fault_stop", "pipe.fault"],
    role: "reader",
    async play(arena) {
      for (const start of STARTS) {
        for (const lie of [272, -16, 4, 2 ** 31, 256 + 2]) {
          await onStage(arena, start, (stage) => lyingWriter(stage, lie));
        }
      }
    },
  },
];

async function slowWriter(stage: Stage): Promise<void> {
  for (let tag = 0; tag < 24; tag++) {
    const size = [0, 20, 100, 47, 112, 1, 64][tag % 7]!;
    stage.step = `message ${tag} of ${size} bytes: `;
    await stage.place(small(tag, size));
    await stage.publish();
    const got = await drain(stage);
    stage.expect(got, drained([smallItem(tag, size)]), "read");
    await stage.controlIs("[ring.release_all]", "head", stage.tail);
  }
}

async function splitEverywhere(stage: Stage): Promise<void> {
  const whole = pattern(SIZE, 5);
  const item = message({ tag: 3, hex: toHex(whole) });
  const tag = { tag: 3 };
  for (let cut = 0; cut < SIZE; cut++) {
    const first = firstOf(SIZE, whole.slice(0, cut), tag);
    const last = part(whole.slice(cut), tag);
    for (const how of ["at once", "frame by frame", "with an extension between"]) {
      stage.step = `cut at ${cut}, ${how}: `;
      await stage.place(first);
      if (how === "frame by frame") {
        await stage.publish();
        stage.expect(await drain(stage), drained([]), "read of the first part");
      }
      if (how === "with an extension between") await stage.place(EXTENSION);
      await stage.place(last);
      await stage.publish();
      stage.expect(await drain(stage), drained([item]), "read");
    }
  }
  // In as many parts as it has bytes.
  stage.step = "cut at every byte at once: ";
  await stage.place(firstOf(SIZE, new Uint8Array(0), tag));
  for (let at = 0; at < SIZE; at++) {
    await stage.place(part(whole.slice(at, at + 1), { ...tag, flags: at === SIZE - 1 ? 2 : 0 }));
    await stage.publish();
    const items = at === SIZE - 1 ? [item] : [];
    stage.expect(await drain(stage), drained(items), `read of part ${at}`);
  }
}

async function writerAsks(stage: Stage): Promise<void> {
  for (let distance = 16; distance <= 112; distance += 16) {
    const wanted = (stage.tail + distance) % 2 ** 32;
    await stage.setControl("writer_wants", wanted + 1);
    let isArmed = true;
    for (let tag = 0; tag < 4; tag++) {
      stage.step = `asked for ${wanted}, at ${stage.tail}: `;
      await stage.place(small(tag));
      await stage.publish();
      const before = await stage.record(0, "bell");
      stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
      const isReached = isArmed && (stage.tail - wanted | 0) >= 0;
      const rung = await stage.record(0, "bell") - before;
      const rings = isReached ? "rings once" : "does not ring";
      stage.demand(
        rung === Number(isReached),
        `[wait.exchange] the bell moved by ${rung}: ${rings}`,
      );
      if (isReached) isArmed = false;
      const must = isArmed ? (wanted + 1) % 2 ** 32 : 0;
      await stage.controlIs("[wait.exchange]", "writer_wants", must);
    }
  }
}

async function leaves(
  stage: Stage,
  count: number,
  how: "end" | "close" | "fail",
): Promise<void> {
  stage.step = `${how} behind ${count} messages: `;
  for (let tag = 0; tag < Math.min(count, 4); tag++) {
    await stage.place(small(tag));
  }
  // The rest is published when the reader has read once.
  if (count > 0) await stage.publish();
  const items = Array.from({ length: Math.min(count, 4) }, (_, tag) => smallItem(tag));
  if (count > 4) {
    stage.expect(await drain(stage), drained(items.splice(0)), "the first read");
    for (let tag = 4; tag < count; tag++) {
      await stage.place(small(tag));
      items.push(smallItem(tag));
    }
    await stage.publish();
  }
  if (how === "end") {
    await stage.place(endFrame());
    await stage.publish();
  } else await stage.setState(0, how === "close" ? CLOSED : failed("peer.terminated"));
  const end = { end: "ended", close: "peer.closed", fail: "peer.failed" }[how];
  const reason = how === "fail" ? "peer.terminated" : undefined;
  stage.expect(await drain(stage), drained(items, end, reason), "read");
  // After `end` nobody asks how the writer is.
  if (how === "end") {
    await stage.setState(0, CLOSED);
    stage.expect(await drain(stage), drained([], "ended"), "read when the writer has closed");
  }
}

async function closes(stage: Stage, count: number): Promise<void> {
  stage.step = `behind ${count} messages: `;
  for (let tag = 0; tag < count; tag++) {
    await stage.place(small(tag));
    await stage.publish();
    stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
  }
  await stage.place(small(9));
  await stage.publish();
  const head = await stage.control("head");
  stage.expect(await stage.session.close(), "ok", "close");
  stage.expect(await drain(stage), drained([], "pipe.closed"), "[pipe.first_answer] read");
  await stage.controlIs("[pipe.close]", "head", head);
  await stage.stateIs("[pipe.close]", 1, CLOSED);
}

async function givenUp(stage: Stage, parts: number): Promise<void> {
  stage.step = `behind ${parts} parts: `;
  const total = 100;
  const begin = async () => {
    await stage.place(firstOf(total, pattern(8), { tag: 4 }));
    for (let index = 1; index < parts; index++) {
      await stage.place(part(pattern(8), { tag: 4, flags: 0 }));
    }
    await stage.publish();
  };
  await begin();
  stage.expect(await drain(stage), drained([]), "read of the parts");
  await stage.place({ kind: 1, flags: 6, tag: 4 }, small(1));
  await stage.publish();
  const cancelled = [{ report: "message.cancelled" }, smallItem(1)];
  stage.expect(await drain(stage), drained(cancelled), "read of the cancel");
  await begin();
  await stage.place(endFrame());
  await stage.publish();
  const truncated = [{ report: "message.truncated" }];
  stage.expect(await drain(stage), drained(truncated, "ended"), "read of the end");
}

async function lyingWriter(stage: Stage, lie: number): Promise<void> {
  stage.step = `tail ${lie} from head: `;
  for (let tag = 0; tag < 2; tag++) {
    await stage.place(small(tag));
    await stage.publish();
    stage.expect(await drain(stage), drained([smallItem(tag)]), "read");
  }
  const head = await stage.control("head");
  await stage.setControl("tail", (stage.tail + lie + 2 ** 32) % 2 ** 32);
  stage.expect(await drain(stage), drained([], "ring.cursor"), "read");
  await stage.controlIs("[ring.fault]", "head", head);
  await stage.stateIs("[ring.fault]", 0, failed("ring.cursor"));
  await stage.publish();
  const again = drained([], "ring.cursor");
  stage.expect(await drain(stage), again, "[pipe.fault] read of a good tail");
}
