/**
 * The worker: Python, which blocks where it asks its user. Nothing in it is asynchronous but the
 * start.
 *
 * @module
 */
import { Port } from "millrace";
import { remote } from "millrace/call";

/** Where the server has what is in the package `pyodide` of npm. */
const PYODIDE = new URL("/pyodide/pyodide.mjs", import.meta.url);

self.onmessage = async ({ data }) => {
  const { loadPyodide } = await import(PYODIDE);
  const python = await loadPyodide();
  python.setInterruptBuffer(data.interrupts);
  const port = Port.from(data);
  const page = remote(port).sync;

  const decoder = new TextDecoder();
  const write = (bytes) => {
    port.write(decoder.decode(bytes, { stream: true }));
    return bytes.length;
  };
  const stdin = () => {
    const line = page.ask(); // this thread sleeps until the user has answered
    python.checkInterrupt();
    return line;
  };
  python.setStdout({ isatty: true, write });
  python.setStderr({ isatty: true, write });
  python.setStdin({ isatty: true, stdin });

  page.ready(python.version);
  for (let program; (program = port.read()) !== undefined;) {
    const globals = python.toPy({ __name__: "__main__" });
    try {
      python.runPython(program, { globals });
    } catch (error) {
      // Without the lines about who runs it.
      port.write(error.message.replace(/ +File "\/lib\/[^]*?(?= +File "<exec>")/, ""));
    }
    page.done();
  }
};
