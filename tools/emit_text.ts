/** Text that more than one emitter needs. @module */

/** Breaks a text at spaces into lines of at most `width`; line breaks in it stay. */
export function wrap(text: string, width: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines = [""];
    for (const word of paragraph.split(" ")) {
      const line = lines[lines.length - 1] as string;
      if (line === "") lines[lines.length - 1] = word;
      else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
      else lines.push(word);
    }
    return lines;
  });
}

/** A number as both languages write it, with `_` between thousands from five digits on. */
export function numeral(value: number): string {
  if (Math.abs(value) < 10_000) return String(value);
  return String(value).replace(/\B(?=(\d{3})+$)/g, "_");
}
