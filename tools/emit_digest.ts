/**
 * Prints `impl-ts/src/digest/blocks.ts`: the compression functions of FIPS 180-4, with every word
 * of a block and of the state in a variable of its own.
 *
 * A loop over an array of words takes twice as long (V8 13.6, SHA-1 of 64 KiB: 291 MB/s for 609),
 * since each round loads and stores what here stays in registers.
 *
 * @module
 */

const WORDS = Array.from({ length: 16 }, (_, index) => index);

/** The whole file, formatted as `deno fmt` would. */
export function emitDigest(): string {
  return [
    "// Generated from tools/emit_digest.ts by tools/generate.ts; do not edit.",
    "",
    "/**",
    " * The blocks of SHA-1 and of SHA-256 (FIPS 180-4, 6.1.2 and 6.2.2), unrolled. Bytes are read",
    " * where they lie, each of them once.",
    " *",
    " * @module",
    " */",
    "",
    ...roundConstants(),
    ...sha1(),
    ...sha256(),
    "",
  ].join("\n");
}

/** The line that takes a big-endian word of the block. */
function load(index: number): string {
  const byte = (offset: number) => {
    const place = 4 * index + offset;
    return `m[at${place === 0 ? "" : ` + ${place}`}]!`;
  };
  const [a, b, c, d] = [0, 1, 2, 3].map(byte);
  return `(${a} << 24) | (${b} << 16) | (${c} << 8) | ${d}`;
}

/** A function over whole blocks, which keeps the state in variables between them. */
function blocks(
  name: string,
  about: string,
  { variables, body }: { variables: string; body: string[] },
): string[] {
  const names = [...variables];
  const all = (line: (index: number, name: string) => string) =>
    names.map((variable, index) => line(index, variable));
  return [
    "",
    `/** ${about} */`,
    `export function ${name}(state: Int32Array, m: Uint8Array, from: number, to: number): void {`,
    ...all((index) => `  let h${index} = state[${index}]!;`),
    "  for (let at = from; at < to; at += 64) {",
    ...WORDS.map((index) => `    let w${index} = ${load(index)};`),
    ...all((index, variable) => `    let ${variable} = h${index};`),
    ...body,
    ...all((index, variable) => `    h${index} = (h${index} + ${variable}) | 0;`),
    "  }",
    ...all((index) => `  state[${index}] = h${index};`),
    "}",
  ];
}

/** The variables as they are named in a round: each round, all move on by one place. */
function rotated(variables: string, round: number): string[] {
  const size = variables.length;
  return [...variables].map((_, index) => variables[(index + size * round - round) % size]!);
}

function left(value: string, bits: number): string {
  return `((${value} << ${bits}) | (${value} >>> ${32 - bits}))`;
}

function sha1(): string[] {
  const variables = "abcde";
  const constants = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6];
  const body = Array.from({ length: 80 }, (_, round) => {
    const [a, b, c, d, e] = rotated(variables, round) as [string, string, string, string, string];
    const word = (back: number) => `w${(round - back) & 15}`;
    const chosen = [
      `(${d} ^ (${b} & (${c} ^ ${d})))`,
      `(${b} ^ ${c} ^ ${d})`,
      `((${b} & ${c}) | (${d} & (${b} | ${c})))`,
      `(${b} ^ ${c} ^ ${d})`,
    ][Math.floor(round / 20)];
    const constant = constants[Math.floor(round / 20)]! | 0;
    const sign = constant < 0 ? `- 0x${(-constant).toString(16)}` : `+ 0x${constant.toString(16)}`;
    const own = word(0);
    return [
      ...round < 16 ? [] : [
        `${own} ^= ${word(3)} ^ ${word(8)} ^ ${word(14)};`,
        `${own} = (${own} << 1) | (${own} >>> 31);`,
      ],
      `${e} = (${e} + ${left(a, 5)} + ${chosen} ${sign} + ${own}) | 0;`,
      `${b} = (${b} << 30) | (${b} >>> 2);`,
    ].map((line) => `    ${line}`);
  }).flat();
  return blocks("sha1Blocks", "Takes the blocks between two places into a state of SHA-1.", {
    variables,
    body,
  });
}

/** The constants of SHA-256: of the cube roots of the first primes, what is after the point. */
function roundConstants(): string[] {
  const primes: number[] = [];
  for (let number = 2; primes.length < 64; number++) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  }
  const words = primes.map((prime) => Math.floor((Math.cbrt(prime) % 1) * 2 ** 32) | 0);
  return ["const K = Int32Array.of(", ...words.map((word) => `  ${word},`), ");"];
}

function sha256(): string[] {
  const variables = "abcdefgh";
  const right = (value: string, ...bits: number[]) =>
    bits.map((bit) => left(value, 32 - bit)).join(" ^ ");
  const rounds = WORDS.flatMap((round) => {
    const [a, b, c, d, e, f, g, h] = rotated(variables, round) as [
      ...[string, string, string, string],
      ...[string, string, string, string],
    ];
    const constant = `K[round${round === 0 ? "" : ` + ${round}`}]!`;
    return [
      `${h} = (${h} + (${g} ^ (${e} & (${f} ^ ${g}))) + ${constant} + w${round}) | 0;`,
      `${h} = (${h} + (${right(e, 6, 11, 25)})) | 0;`,
      `${d} = (${d} + ${h}) | 0;`,
      `${h} = (${h} + ((${a} & ${b}) | (${c} & (${a} | ${b})))) | 0;`,
      `${h} = (${h} + (${right(a, 2, 13, 22)})) | 0;`,
    ];
  });
  const schedule = WORDS.flatMap((index) => {
    const word = (offset: number) => `w${(index + offset) & 15}`;
    const [own, early, late] = [word(0), word(1), word(14)];
    return [
      `${own} = (${own} + ${word(9)}) | 0;`,
      `${own} = (${own} + (${right(early, 7, 18)} ^ (${early} >>> 3))) | 0;`,
      `${own} = (${own} + (${late} >>> 10 ^ ${right(late, 17, 19)})) | 0;`,
    ];
  });
  const body = [
    "    for (let round = 0;; round += 16) {",
    ...rounds.map((line) => `      ${line}`),
    "      if (round === 48) break;",
    ...schedule.map((line) => `      ${line}`),
    "    }",
  ];
  return blocks("sha256Blocks", "The same for SHA-256.", { variables, body });
}
