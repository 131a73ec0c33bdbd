/**
 * A testee whose port is good, and whose word is not: what it says of a live run is that of another
 * one. `deno run -A liar.ts`.
 *
 * @module
 */

import type { Task } from "../../kit/protocol.ts";
import { serveLines, type Session } from "../server.ts";
import { typescript } from "../typescript/adapter.ts";
import { openFile } from "../typescript/files.ts";

/** Changes the transcript of what it has read: the third message has a byte more. */
function lying(session: Session): Session {
  const run = session.run!.bind(session);
  session.run = async (task: Task, timeoutMs: number) => {
    const ran = await run(task, timeoutMs);
    if (task.role !== "read") return ran;
    const record = ran.record?.map(([tag, size, crc32], index): [number, number, number] =>
      index === 2 ? [tag, size + 1, crc32] : [tag, size, crc32]
    );
    return { ...ran, size: ran.size + 1, ...(record !== undefined && { record }) };
  };
  return session;
}

await serveLines({
  ...typescript,
  hello: { ...typescript.hello, carriers: ["bytes", "file"] },
  openFile: (path, opening) => lying(openFile(path, opening)),
});
