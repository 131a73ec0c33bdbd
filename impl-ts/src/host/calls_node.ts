/**
 * The calls of a host by an addon of Node, which is in a package of its own for each platform, for
 * example `millrace-linux-x64`. It is loaded when it is first needed.
 *
 * @module
 */

import type { HostCalls } from "./calls.ts";
import { ENOSYS, SystemError } from "./system_error.ts";

/** The calls that the addon provides; the rest comes from Node itself. */
type Addon = Omit<HostCalls, "processor" | "pid" | "requireAccess"> & { readonly version: number };

/** The members of Node's `process` that are used here. */
interface NodeProcess {
  readonly platform: string;
  readonly arch: string;
  readonly pid: number;
  getBuiltinModule?(name: "node:module"): {
    createRequire(url: string): (name: string) => unknown;
  };
}

/** The version of the addon's functions. An addon of another version is refused. */
const VERSION = 1;

/** The names of the processors for which there is an addon. */
const PROCESSORS: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

const OTHERWISE = "Without it, processes can send the same messages over a Unix socket";

/**
 * Loads the addon for this platform.
 *
 * @throws {SystemError} `ENOSYS` if there is none.
 */
export function openNode(): HostCalls {
  const { process } = globalThis as { process?: NodeProcess };
  const modules = process?.getBuiltinModule?.("node:module");
  if (process === undefined || modules === undefined) {
    throw refuse("it takes Deno, or Node 20.16 or later, this is another runtime");
  }
  const { platform, arch, pid } = process;
  const processor = platform === "linux" ? PROCESSORS[arch] : undefined;
  if (processor === undefined) {
    throw refuse(`it takes Linux on x86-64 or aarch64, this is ${platform} on ${arch}`);
  }
  const name = `millrace-${platform}-${arch}`;
  const addon = load(name, modules.createRequire(import.meta.url));
  if (addon.version !== VERSION) {
    throw refuse(`the package ${name} is of another version of millrace`);
  }
  return Object.assign(Object.create(addon), { processor, pid, requireAccess: () => {} });
}

function load(name: string, require: (name: string) => unknown): Addon {
  try {
    return require(name) as Addon;
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string };
    const isMissing = code === "MODULE_NOT_FOUND";
    throw refuse(`the package ${name} ${isMissing ? "is not installed" : `fails: ${message}`}`);
  }
}

function refuse(why: string): SystemError {
  return new SystemError(`Cannot map file: ${why}. ${OTHERWISE}`, ENOSYS, "dlopen");
}
