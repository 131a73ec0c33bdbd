/**
 * All scripts about segments in files.
 *
 * @module
 */

import type { Arena } from "../arena.ts";
import type { KitCase } from "../verdict.ts";
import { fileCase } from "./files.ts";
import { FILE_CREATE_SCRIPTS } from "./files_create.ts";
import { FILE_LOCK_SCRIPTS } from "./files_lock.ts";
import { FILE_OPEN_SCRIPTS } from "./files_open.ts";
import { FILE_SEALED_SCRIPTS } from "./files_sealed.ts";
import { FILE_USE_SCRIPTS } from "./files_use.ts";

/** Scripts in which the kit is another process, at the same file. */
export const FILES: KitCase<Arena>[] = [
  ...FILE_OPEN_SCRIPTS,
  ...FILE_CREATE_SCRIPTS,
  ...FILE_USE_SCRIPTS,
  ...FILE_LOCK_SCRIPTS,
  ...FILE_SEALED_SCRIPTS,
].map(fileCase);
