/**
 * The file of a creator before it gets its name. See `spec/file.md`.
 *
 * @module
 */

import * as files from "./files.ts";
import { EISDIR, EOPNOTSUPP, SystemError } from "./system_error.ts";

/** A file that no other process looks for: without a name, or under a name of its own. */
export interface Draft {
  readonly fd: number;
  readonly path: string | undefined;
}

/**
 * Creates a file of `size` bytes for a path. `named` gives it a temporary name at once, as on file
 * systems that do not support files without a name; for tests.
 *
 * @throws {SystemError} `ENOSPC` if there is no space, and other errors of the system.
 */
export function makeDraft(path: string, size: number, named: boolean = false): Draft {
  const draft = openDraft(path, named);
  try {
    files.reserve(draft.fd, size);
    return draft;
  } catch (error) {
    if (draft.path !== undefined) files.unlink(draft.path);
    files.close(draft.fd);
    throw error;
  }
}

/**
 * Creates sealed memory of `size` bytes, which never gets a name.
 *
 * @throws {SystemError} if there is not enough memory, and other errors of the system.
 */
export function makeSealed(size: number): number {
  const fd = files.openMemory();
  if (fd < 0) throw new SystemError("Cannot make memory", -fd, "memfd_create");
  try {
    files.makePrivate(fd);
    files.reserve(fd, size);
    files.seal(fd); // [segment.file_sealed]
    return fd;
  } catch (error) {
    files.close(fd);
    throw error;
  }
}

function openDraft(path: string, named: boolean): Draft {
  if (!named) {
    const slash = path.lastIndexOf("/");
    const folder = slash < 0 ? "." : path.slice(0, slash) || "/";
    const fd = files.openUnnamed(folder);
    if (fd >= 0) return { fd, path: undefined };
    // EISDIR comes from a kernel that does not know the flag.
    if (fd !== -EOPNOTSUPP && fd !== -EISDIR) {
      throw new SystemError(`Cannot create ${path}`, -fd, "open");
    }
  }
  const other = `${path}.${crypto.randomUUID()}`;
  const fd = files.openNew(other);
  if (fd >= 0) return { fd, path: other };
  throw new SystemError(`Cannot create ${path}`, -fd, "open");
}
