/**
 * What the operating system refuses, by its own name.
 *
 * @module
 */

/** The numbers of Linux, the same on x86-64 and aarch64. */
const NAMES: Readonly<Record<number, string>> = {
  1: "EPERM",
  2: "ENOENT",
  4: "EINTR",
  5: "EIO",
  6: "ENXIO",
  9: "EBADF",
  11: "EAGAIN",
  12: "ENOMEM",
  13: "EACCES",
  16: "EBUSY",
  17: "EEXIST",
  18: "EXDEV",
  19: "ENODEV",
  20: "ENOTDIR",
  21: "EISDIR",
  22: "EINVAL",
  23: "ENFILE",
  24: "EMFILE",
  26: "ETXTBSY",
  27: "EFBIG",
  28: "ENOSPC",
  30: "EROFS",
  31: "EMLINK",
  36: "ENAMETOOLONG",
  37: "ENOLCK",
  38: "ENOSYS",
  40: "ELOOP",
  75: "EOVERFLOW",
  95: "EOPNOTSUPP",
  116: "ESTALE",
  122: "EDQUOT",
};

/** Numbers that the code decides by. */
export const ENOENT = 2;
export const EAGAIN = 11;
export const EACCES = 13;
export const EEXIST = 17;
export const EISDIR = 21;
export const EINVAL = 22;
export const ENOSYS = 38;
export const EOPNOTSUPP = 95;
export const ETIMEDOUT = 110;

/**
 * The operating system refused a call. Not a reason of the specification, and so no
 * `MillraceError`: what it refuses, for instance a folder that does not exist, no peer has done.
 *
 * @example
 * ```ts
 * import { portGeometry } from "@millrace/millrace";
 * import { SegmentFile, SystemError } from "@millrace/millrace/host"; // needs --allow-ffi
 *
 * try {
 *   SegmentFile.create("/dev/shm/nobody-made-this/segment", portGeometry(), { endpoint: 0 });
 * } catch (error) {
 *   console.log(error instanceof SystemError && error.code); // "ENOENT"
 * }
 * ```
 */
export class SystemError extends Error {
  /** The name of the class. */
  override name = "SystemError";
  /** The name of the error, `ENOENT` for instance; `ENOSYS` also on a system without this host. */
  readonly code: string;
  /** Its number in Linux. */
  readonly errno: number;
  /** The call that was refused, `open` for instance. */
  readonly call: string;

  /** Makes the error of a call; `message` is for people. */
  constructor(message: string, errno: number, call: string) {
    const code = NAMES[errno] ?? `E${errno}`;
    super(`${message}: ${call} failed (${code})`);
    this.code = code;
    this.errno = errno;
    this.call = call;
  }
}
