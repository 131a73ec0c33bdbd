import { type Memory, Port } from "millrace";

/** Never runs: the server sends its script without the headers. */
export default function worker(memory: Memory): void {
  using port = Port.attach<never, string>(memory);
  port.write("here I am");
}
