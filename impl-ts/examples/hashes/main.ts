/**
 * Hashes the files of a folder with one worker, with two, and so on up to the processors of the
 * machine, and shows what each one more has brought.
 *
 * @module
 */
import { Pool } from "millrace/pool";
import { drawRuns } from "./picture.ts";
import type worker from "./worker.ts";

const USAGE = "Usage: deno run -A impl-ts/examples/hashes/main.ts FOLDER [--svg FILE]";
/** Most files that are taken, and bytes that one may have: each is read as a whole. */
const FILE_COUNT_MAX = 20_000;
const FILE_SIZE_MAX = 64 * 1024 * 1024;

/** What was measured with so many workers. */
export interface Run {
  readonly workers: number;
  readonly files: number;
  readonly bytes: number;
  /** Milliseconds in all, and those that one file took its worker. */
  readonly ms: number;
  readonly service: number;
}

/** Hashes all files with so many workers. The hashes come in the order of the paths. */
export async function hashAll(
  paths: readonly string[],
  workers: number,
): Promise<{ run: Run; hashes: string[] }> {
  const url = new URL("./worker.ts", import.meta.url);
  await using pool = new Pool<typeof worker>(url, { least: workers, most: workers });
  // All of them are there, and have read what they need, before the clock is read.
  await Promise.all(Array.from({ length: 4 * workers }, () => pool.run(paths[0]!)));
  const hashes: string[] = [];
  let [bytes, service] = [0, 0];
  const began = performance.now();
  for await (const { hash, size, ms } of pool.map(paths)) {
    hashes.push(hash);
    bytes += size;
    service += ms;
  }
  const ms = performance.now() - began;
  const files = paths.length;
  return { run: { workers, files, bytes, ms, service: service / files }, hashes };
}

/** The runs as a table. */
export function tableOf(runs: readonly Run[]): string {
  const rows = runs.map(({ workers, files, bytes, ms, service }) => [
    `${workers}`,
    (files / ms * 1000).toFixed(0),
    (bytes / ms / 1000).toFixed(1),
    service.toFixed(3),
    `${(runs[0]!.ms / ms).toFixed(2)}`,
  ]);
  const all = [["workers", "files/s", "MB/s", "ms each", "times one"], ...rows];
  return all.map((row) => row.map((cell) => cell.padStart(12)).join("")).join("\n");
}

/** The files of a folder, and of those in it. */
export function filesOf(folder: string): string[] {
  const paths: string[] = [];
  const look = (at: string) => {
    for (const { name, isDirectory, isFile } of Deno.readDirSync(at)) {
      if (paths.length >= FILE_COUNT_MAX) return;
      const path = `${at}/${name}`;
      if (isDirectory) look(path);
      else if (isFile && Deno.statSync(path).size <= FILE_SIZE_MAX) paths.push(path);
    }
  };
  look(folder);
  return paths.sort();
}

if (import.meta.main) {
  const [folder, option, file = "hashes.svg"] = Deno.args;
  if (folder === undefined || (option ?? "--svg") !== "--svg") {
    console.error(USAGE);
    Deno.exit(2);
  }
  const paths = filesOf(folder);
  if (paths.length === 0) throw new Error(`There are no files in ${folder}`);
  const runs: Run[] = [];
  for (let count = 1; count <= navigator.hardwareConcurrency; count++) {
    runs.push((await hashAll(paths, count)).run);
  }
  console.log(`${runs[0]!.files} files, ${(runs[0]!.bytes / 1e6).toFixed(1)} MB`);
  console.log(tableOf(runs));
  await Deno.writeTextFile(file, drawRuns(runs));
  console.log(`The picture is in ${file}`);
}
