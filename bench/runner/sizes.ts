/**
 * The bytes of a bundle with a part of the npm package, as its user would make it.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { ENTRIES, PACKAGE_NAME } from "../../tools/build_entries.ts";
import { manifest, type PackageFile } from "../../tools/build_package.ts";
import { bundleModules } from "../../tools/build_modules.ts";
import { stopBundler } from "../../tools/build_scripts.ts";
import { measureImport, type Size } from "../../tools/build_sizes.ts";

/** The parts of the scenario `size`, and what is imported for each. */
const IMPORTS: Readonly<Record<string, { names: string; specifier: string }>> = {
  "Port": { names: "Port", specifier: PACKAGE_NAME },
  "Writer-Reader": { names: "Segment, Writer, Reader", specifier: PACKAGE_NAME },
  "SABMessagePort": {
    names: "SABMessagePort",
    specifier: `${PACKAGE_NAME}/sab-message-port`,
  },
};

/** The bytes of each, minified, and gzipped under its name with `-gzip`. */
export async function measureSizes(): Promise<Record<string, number>> {
  const root = fileURLToPath(new URL("../../", import.meta.url)).slice(0, -1);
  const files: PackageFile[] = [
    { path: "package.json", text: JSON.stringify(manifest("0.0.0")) },
    ...await bundleModules(root, ENTRIES),
  ];
  const limit: Size = { minified: Infinity, gzip: Infinity };
  const sizes: Record<string, number> = {};
  try {
    for (const [name, each] of Object.entries(IMPORTS)) {
      const { minified, gzip } = await measureImport({ ...each, limit }, files);
      sizes[name] = minified;
      sizes[`${name}-gzip`] = gzip;
    }
    return sizes;
  } finally {
    await stopBundler();
  }
}
