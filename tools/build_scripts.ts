/**
 * Turns TypeScript modules into scripts, with esbuild.
 *
 * @module
 */
import * as esbuild from "esbuild";

// Node 20 has all of it, and private names stay private.
const TARGET = "es2022";

/** How all scripts are made. */
export const OPTIONS = {
  bundle: true,
  write: false,
  target: TARGET,
  platform: "neutral",
  charset: "ascii",
  legalComments: "none",
  logLevel: "silent",
} satisfies esbuild.BuildOptions;

/** Bundles into one text. */
export async function bundleText(options: esbuild.BuildOptions): Promise<string> {
  const { outputFiles = [] } = await esbuild.build({ ...OPTIONS, ...options });
  const [file] = outputFiles;
  if (file === undefined || outputFiles.length > 1) {
    throw new Error(`Expected one file of the bundler, got ${outputFiles.length}`);
  }
  return file.text;
}

/** Ends the process that all builds share; without this, ours does not end either. */
export function stopBundler(): Promise<void> {
  return esbuild.stop();
}
