/** The timeout of a read also holds if the peer has died inside a large message. */

import { assert, assertEquals } from "@std/assert";
import { assertCode } from "../testing/fixture.ts";
import { MailboxWriter } from "../mailbox/mailbox.ts";
import { layout } from "../memory/layout.ts";
import { Writer } from "../pipe/ends.ts";
import { append, encode, makeSend, pump } from "../pipe/outgoing.ts";
import { messageOf, SMALL, WIRES } from "./sab_fixture.ts";
import { SABMessagePort, type WireName } from "./sab_message_port.ts";
import { openSegment, ringCapacity } from "./sab_wire.ts";
import type { Outcome } from "./sab_worker_fixture.ts";

const BOUND_MS = 20_000;
const LARGE = "x".repeat(1_000_000);

/** Writes one part of a large message, as side `a` of a port would, and no more. */
function writeHalf(buffer: SharedArrayBuffer, wire: WireName): { close(): void } {
  const section = { buffer, byteOffset: 0, byteLength: SMALL };
  if (wire === "mailbox") {
    const writer = MailboxWriter.attach(section);
    assertCode(() => writer.write(LARGE, { timeout: 0 }), "wait.timeout");
    return writer;
  }
  const writer = Writer.attach(openSegment(section, ringCapacity(section)));
  const outgoing = writer.link.outgoing!;
  append(outgoing, encode(outgoing, LARGE, makeSend(layout.FRAME_KIND_DATA)));
  assertEquals(pump(outgoing), false); // and nobody pumps any more
  return writer;
}

for (const wire of WIRES) {
  Deno.test(`SABMessagePort: a read comes back in time from a dead peer, ${wire}`, async () => {
    const buffer = new SharedArrayBuffer(2 * SMALL);
    const dead = writeHalf(buffer, wire);
    // Reads in a worker, so that a read that never returns can be ended.
    const url = new URL("./sab_worker_fixture.ts", import.meta.url);
    const worker = new Worker(url, { type: "module" });
    let timer;
    try {
      const seen = await new Promise<Outcome>((resolve, reject) => {
        timer = setTimeout(() => reject(new Error("a read did not come back")), BOUND_MS);
        worker.onmessage = ({ data }) => Array.isArray(data) && resolve(data);
        worker.postMessage({ type: "SABMessagePort", buffer, wire, task: "read briefly" });
      });
      assertEquals(seen.map(([result]) => result), [null, [], null, [], null, null]);
      for (const [, ms] of seen) assert(ms < 5_000, `${ms}`);
    } finally {
      clearTimeout(timer);
      dead.close();
      worker.terminate();
    }
  });

  Deno.test(`SABMessagePort: what a read in vain has got is kept, ${wire}`, async () => {
    const sab = new SharedArrayBuffer(2 * SMALL);
    const a = new SABMessagePort("a", sab, null, { wire });
    const b = new SABMessagePort("b", sab, null, { wire });
    const written = a.postMessage(LARGE);
    let vain = 0;
    let found = null;
    for (; found === null; vain++) {
      assert(vain < 5_000, "it never comes");
      found = vain % 2 === 0 ? b.read(0) : await b.asyncRead(1);
      await new Promise((resolve) => setTimeout(resolve));
    }
    assert(vain > 2, `${vain}`);
    assertEquals(found, LARGE);
    await written;
    a.close();
    assertEquals(await messageOf(() => b.asyncRead(1)), "SABPipe disposed");
  });
}
