/**
 * All scripts about segments in files.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { fileCase } from "./files.ts";
import { FILE_CREATE_SCRIPTS } from "./files_create.ts";
import { FILE_FIND_SCRIPTS } from "./files_find.ts";
import { FILE_LOCK_SCRIPTS } from "./files_lock.ts";
import { FILE_OPEN_SCRIPTS } from "./files_open.ts";

/** Scripts in which the kit is another process, at the same file. */
export const FILES: KitCase<Arena>[] = [
  ...FILE_FIND_SCRIPTS,
  ...FILE_OPEN_SCRIPTS,
  ...FILE_CREATE_SCRIPTS,
  ...FILE_LOCK_SCRIPTS,
].map(fileCase);
