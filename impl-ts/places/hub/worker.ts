import { Port } from "millrace";
import { WAIT } from "../stage.ts";

export default function worker(handoff: { name: string }): string[] {
  using port = Port.from<string>(handoff);
  const answers: string[] = [];
  for (const word of ["first", "last"]) {
    port.write(`${handoff.name} ${word}`, WAIT);
    answers.push(port.read(WAIT) ?? "nothing");
  }
  port.end();
  return answers;
}
