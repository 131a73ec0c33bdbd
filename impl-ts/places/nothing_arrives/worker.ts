import { type Memory, Port } from "millrace";

export default function worker(memory: Memory): void {
  const port = Port.attach<never, string>(memory);
  port.postMessage("one of the last posts");
  port.postMessage("the last");
  port.close(); // without it, a worker that ends here has sent nothing
}
