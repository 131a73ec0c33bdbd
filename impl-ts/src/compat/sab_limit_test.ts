import { assertEquals, assertThrows } from "@std/assert";
import { codeOf } from "../testing/fixture.ts";
import { SMALL, turn, WIRES, within } from "./sab_fixture.ts";
import { MWChannel, SABMessagePort, SABPipe } from "./sab_message_port.ts";

for (const wire of WIRES) {
  Deno.test(`a reader takes messages of any size, or up to maxMessageSize, ${wire}`, async () => {
    const size = 5 * 1024 * 1024; // more than the readers of ports accept by default
    const writer = new SABPipe<string>("w", 1024 * 1024, 0, null, null, { wire });
    const reader = new SABPipe<string>("r", writer.buffer, 0, null, null, { wire });
    const written = writer.postMessage("x".repeat(size));
    assertEquals((await within(reader.asyncRead()))?.length, size);
    await within(written);
    writer.destroy();

    const options = { wire, maxMessageSize: 100 };
    const a = new SABMessagePort("a", new SharedArrayBuffer(2 * SMALL), null, { wire });
    const limited = [SABMessagePort.from(a.postInit()[0], null, options)._reader];
    const m = new MWChannel("m", 8, null, { wire });
    limited.push(MWChannel.from(m.postInit()[0], null, options)._sabReader!);
    for (const [index, pipe] of [a._writer, m._sabWriter!].entries()) {
      for (const message of ["x".repeat(101), "x".repeat(50_000), "fits"]) {
        pipe.postMessage(message);
        const read = within(limited[index]!.asyncRead(20_000));
        if (message === "fits") assertEquals(await read, message);
        else assertEquals(await codeOf(read), "message.size");
        await turn();
      }
    }
    a.close();
    m.close();
  });

  Deno.test(`a limit that is none is refused before the end is taken, ${wire}`, () => {
    for (const maxMessageSize of [-1, NaN, 2 ** 40]) {
      const options = { wire, maxMessageSize };
      const memory = new SharedArrayBuffer(SMALL);
      assertThrows(() => new SABPipe("r", memory, 0, null, null, options), RangeError);
      new SABPipe("r", memory, 0, null, null, { wire }).destroy();
    }
  });
}
