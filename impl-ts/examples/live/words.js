/** Figures as people read them. @module */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A count; from a million on in short. */
export function count(value) {
  return value < 1e6 ? WHOLE.format(value) : COMPACT.format(value);
}

/** A time that is given in microseconds. */
export function duration(us) {
  if (us < 1000) return `${SHORT.format(us)} µs`;
  return us < 1e6 ? `${SHORT.format(us / 1000)} ms` : `${SHORT.format(us / 1e6)} s`;
}

/** Bytes, in powers of 1,024 where that is whole, and else of 1,000. */
export function bytes(value) {
  if (value < 1024) return `${SHORT.format(value)} B`;
  if (value % 1024 === 0 && value < 1024 ** 2) return `${WHOLE.format(value / 1024)} KiB`;
  const power = Math.min(3, Math.floor(Math.log10(value) / 3));
  return `${SHORT.format(value / 1000 ** power)} ${["B", "kB", "MB", "GB"][power]}`;
}

/** A part of one. */
export function percent(part) {
  return `${(100 * part).toFixed(part > 0.999 ? 2 : 1)} %`;
}

/** So many times as much. */
export function ratio(value) {
  return `${value.toPrecision(2).replace(/^(\d\d)\.$/, "$1").replace(/e.*/, "")} ×`;
}
