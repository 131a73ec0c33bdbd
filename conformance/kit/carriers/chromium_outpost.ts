/**
 * An outpost of the kit in a page, which can be one end itself: it may not block, and so waits by
 * events.
 *
 * @module
 */

import { typescript } from "../../testees/typescript/adapter.ts";
import { Outpost } from "./outpost.ts";

const { hello } = typescript;

const outpost = new Outpost(
  async (address) => await (await fetch(address)).arrayBuffer(),
  {
    ...typescript,
    hello: {
      ...hello,
      name: `${hello.name}, on a page`,
      carriers: ["shared"],
      waits: ["event"],
      offers: [...hello.offers!, "no_block"],
    },
  },
);

// For the kit, which drives the browser.
Object.assign(globalThis, { outpost });
