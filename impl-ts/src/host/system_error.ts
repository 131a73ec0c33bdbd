/**
 * Errors of the operating system, by their own names.
 *
 * @module
 */

/** The names of error numbers in Linux, the same on x86-64 and aarch64. */
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

/** The error numbers that the code distinguishes. */
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
 * The operating system refused a call. This is not a `MillraceError`, because the specification has
 * no reason for it: no peer caused it, but for instance a folder that does not exist.
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
  /** The name, which a bundler would shorten. @internal */
  static override readonly name: string = "SystemError";

  /** The name of the class. */
  override name = "SystemError";
  /**
   * The name of the error, for instance `ENOENT`; also `ENOSYS` on a system that is not supported.
   */
  readonly code: string;
  /** The number of the error in Linux. */
  readonly errno: number;
  /** The call that was refused, for instance `open`. */
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
