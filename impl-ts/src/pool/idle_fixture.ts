/** A program that does not close its pool, whose worker is ended as soon as it is idle. */

import { Pool } from "./pool.ts";
import { WORK_URL } from "./fixture.ts";
import type module from "./worker_fixture.ts";

const pool = new Pool<typeof module>(WORK_URL, { least: 0, most: 1, idle: 0 });
console.log(await pool.run(1, { name: "twice" }));
