/**
 * The file of a creator, before it has its name. See `spec/segment.md`, "Segments in a file".
 *
 * @module
 */

import * as libc from "./libc.ts";
import { EISDIR, EOPNOTSUPP, SystemError } from "./system_error.ts";

/** A file that nobody else sees: without a name, or under one of its own. */
export interface Draft {
  readonly fd: number;
  readonly path: string | undefined;
}

/**
 * Makes a file of `size` bytes for a path. `named` gives it a name at once, as on file systems that
 * have no files without one; for tests.
 *
 * @throws {SystemError} `ENOSPC` if there is no room, and whatever else the system says.
 */
export function makeDraft(path: string, size: number, named: boolean = false): Draft {
  const draft = openDraft(path, named);
  try {
    libc.reserve(draft.fd, size);
    return draft;
  } catch (error) {
    if (draft.path !== undefined) libc.unlink(draft.path);
    libc.close(draft.fd);
    throw error;
  }
}

/**
 * Makes sealed memory of `size` bytes, which has no name and never gets one.
 *
 * @throws {SystemError} if there is not so much, and whatever else the system says.
 */
export function makeSealed(size: number): number {
  const fd = libc.openMemory();
  if (fd < 0) throw new SystemError("Cannot make memory", libc.lastErrno(), "memfd_create");
  try {
    libc.makePrivate(fd);
    libc.reserve(fd, size);
    libc.seal(fd); // [segment.file_sealed]
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

function openDraft(path: string, named: boolean): Draft {
  if (!named) {
    const slash = path.lastIndexOf("/");
    const folder = slash < 0 ? "." : path.slice(0, slash) || "/";
    const fd = libc.openUnnamed(folder);
    if (fd >= 0) return { fd, path: undefined };
    const errno = libc.lastErrno();
    // The second: a kernel to which the flag means nothing.
    if (errno !== EOPNOTSUPP && errno !== EISDIR) {
      throw new SystemError(`Cannot create ${path}`, errno, "open");
    }
  }
  const other = `${path}.${crypto.randomUUID()}`;
  const fd = libc.openNew(other);
  if (fd >= 0) return { fd, path: other };
  throw new SystemError(`Cannot create ${path}`, libc.lastErrno(), "open");
}
