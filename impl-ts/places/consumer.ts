/**
 * A program for Node that uses the package as a stranger would: it must compile against the
 * declarations alone. Nobody runs it.
 *
 * @module
 */
import { type Memory, MillraceError, Port, type ReasonCode } from "millrace";
import { SABMessagePort, type SABMessagePortInit } from "millrace/sab-message-port";

/** What a worker is asked. */
interface Question {
  n: number;
}

/** Both ways are typed, and nothing yet is `undefined`. */
export async function ask(memory: Memory, n: number): Promise<string> {
  using port: Port<string, Question> = await Port.attachAsync<string, Question>(memory);
  port.write({ n }, { timeout: 1000 });
  const answer: string | undefined = port.read() ?? await port.readAsync({ timeout: 1000 });
  return answer ?? "none";
}

/** Errors have a code that the compiler knows. */
export function codeOf(error: unknown): ReasonCode | undefined {
  return error instanceof MillraceError ? error.code : undefined;
}

/** The drop-in layer is another entry of the same package, with the same kind of errors. */
export async function relay(init: SABMessagePortInit, note: string): Promise<void> {
  const other: SABMessagePort = SABMessagePort.from(init);
  await other.postMessage({ note });
  other.close();
}
