/** A worker of the driver in Deno. @module */
import { listen } from "./web_worker.ts";

listen(async () => {
  const { denoPlace } = await import("./deno_place.ts");
  return denoPlace(Deno.env.get("MILLRACE_SAB_MESSAGE_PORT"));
});
