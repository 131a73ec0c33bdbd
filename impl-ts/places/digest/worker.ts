import { Sha1, Sha256 } from "millrace/digest";

export default function worker(bytes: Uint8Array): string[] {
  return [new Sha1(), new Sha256()].map((digest) => digest.update(bytes).hex());
}
