/** A worker of the page in Chromium. @module */
import { pagePlace } from "./page_place.ts";
import { listen } from "./web_worker.ts";

listen(() => Promise.resolve(pagePlace()));
