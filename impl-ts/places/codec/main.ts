/** Messages in a form of the application's own: points as three numbers of 64 bits. */
import { Port } from "millrace";
import { writeMessage } from "millrace/raw";
import { assertEquals, assertFails, type Stage, WAIT } from "../stage.ts";
import { POINTS } from "./points.ts";

export default async function main(stage: Stage): Promise<void> {
  const port = Port.create({ capacity: 512, codec: POINTS });
  const worker = stage.start();
  worker.postMessage(port.memory);
  const many = Array.from({ length: 100 }, (_, n) => [n, -n, n / 3]).flat();
  for (const numbers of [[1, 2, 3], [0.1, -0, Infinity], many]) {
    await port.writeAsync(numbers, WAIT);
    assertEquals(await port.readAsync(WAIT), numbers.toReversed());
  }
  // What the codec refuses is the caller's, and costs nothing.
  const refused = await port.writeAsync([1], WAIT).catch((error) => error);
  assertEquals(String(refused), "RangeError: A point has three numbers");
  // Who lacks the codec loses that message, and no other.
  await port.writeAsync([7, 7, 7], WAIT);
  assertEquals(await port.readAsync(WAIT), [7, 7, 7]);
  const plain = Port.create();
  const other = Port.attach(plain.memory, { codec: POINTS });
  other.write([1, 2, 3]);
  plain.write("answered");
  await assertFails("message.codec", () => plain.readAsync(WAIT));
  assertEquals(other.read(WAIT), "answered" as never);

  copyTexts();

  port.end();
  assertEquals(await port.readAsync(WAIT), undefined);
  assertEquals(await worker.result, 4);
  for (const each of [port, plain, other]) each.close();
}

/** Texts of any size, where the ring holds doubles that are no numbers, whose bits may change. */
function copyTexts(): void {
  const here = Port.create<unknown>({ capacity: 256 });
  const there = Port.attach<unknown>(here.memory);
  const noNumbers = new Uint8Array(Float64Array.of(NaN, -NaN, NaN, NaN, NaN, NaN).buffer);
  for (let at = 7; at < noNumbers.length; at += 8) noNumbers.set([1, 2, 3, 4, 0xf4, 0x7f], at - 5);
  for (let size = 0; size <= noNumbers.length; size++) {
    for (let lap = 0; lap < 4; lap++) {
      here.write(noNumbers);
      assertEquals(there.read(), noNumbers);
    }
    const text = "x".repeat(size);
    here.write(text);
    assertEquals(there.read(), text);
    const bytes = new Uint8Array(size).map((_, index) => noNumbers[index]!);
    writeMessage(here, { codec: 1, payload: bytes });
    let answer: unknown;
    try {
      answer = there.read();
    } catch (error) {
      answer = (error as { code?: string }).code;
    }
    assertEquals([size, answer === "message.text"], [size, size > 6]);
  }
  for (const each of [here, there]) each.close();
}
