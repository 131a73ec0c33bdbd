// The pages of the examples, served to this machine, and shown in the user's browser.

import { serveExamples } from "../../impl-ts/examples/serve.ts";
import { findProgram } from "../../tools/programs.ts";
import { type Page, showStep } from "./terminal.ts";

/** Serves them until the process is ended. The address is what is printed on standard output. */
export async function showPages({ port, open }: Page): Promise<number> {
  const server = serve(port);
  const url = `http://127.0.0.1:${server.addr.port}/`;
  console.log(url);
  const opener = open ? await findOpener() : undefined;
  if (opener === undefined) showStep("Open this address in a browser; Ctrl-C ends this.");
  else showStep(await show(opener, url));
  await server.finished;
  return 0;
}

function serve(port: number): Deno.HttpServer<Deno.NetAddr> {
  try {
    return serveExamples(port);
  } catch (error) {
    throw new Error(`Cannot serve on port ${port}: ${(error as Error).message}`);
  }
}

/** The program by which the desktop opens an address; undefined where there is no desktop. */
async function findOpener(): Promise<string | undefined> {
  if (Deno.build.os === "darwin") return await findProgram(["open"]);
  const hasDisplay = Deno.env.has("DISPLAY") || Deno.env.has("WAYLAND_DISPLAY");
  return hasDisplay ? await findProgram(["xdg-open"]) : undefined;
}

/** Opens the address, and returns what there is to say about it. */
async function show(opener: string, url: string): Promise<string> {
  const { success } = await new Deno.Command(opener, {
    args: [url],
    stdout: "null",
    stderr: "null",
  }).output();
  return success
    ? "It is shown in your browser; Ctrl-C ends this."
    : "No browser could be opened: open this address in one; Ctrl-C ends this.";
}
