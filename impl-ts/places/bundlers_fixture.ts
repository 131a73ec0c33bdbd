/**
 * Runs a bundler over the project in the current folder, as its own command would: with its file of
 * options, or with the words of a command line, `bundlers_fixture.ts esbuild main.ts --bundle`.
 *
 * @module
 */

const [name, ...words] = Deno.args;
const optionsIn = async (file: string) => (await import(`file://${Deno.cwd()}/${file}`)).default;

if (name === "vite") {
  const { build } = await import("vite");
  await build({ logLevel: "warn" });
} else if (name === "webpack") {
  const { default: webpack } = await import("webpack");
  const options = { context: Deno.cwd(), ...await optionsIn("webpack.config.js") };
  options.output.path = `${Deno.cwd()}/dist`;
  await new Promise<void>((done, fail) => {
    webpack(options, (error, stats) => {
      if (error) fail(error);
      else if (stats!.hasErrors() || stats!.hasWarnings()) fail(new Error(stats!.toString()));
      else done();
    });
  });
} else if (name === "rollup") {
  const { rollup } = await import("rollup");
  const options = await optionsIn("rollup.config.js");
  await using bundle = await rollup(options);
  await bundle.write(options.output);
} else if (name === "esbuild") {
  const { build, stop } = await import("esbuild");
  const flags = words.filter((word) => word.startsWith("--"));
  const options = flags.map((flag) => {
    const [key, value = true] = flag.slice(2).split("=");
    return [key, value];
  });
  await build({
    ...Object.fromEntries(options),
    entryPoints: words.filter((word) => !flags.includes(word)),
  });
  await stop();
} else {
  throw new TypeError(`Cannot run ${name}: it is no bundler that is known here`);
}
