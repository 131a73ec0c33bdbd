/** Figures as people read them: no line breaks between a number and its unit. @module */

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A count; from a million on in short. */
export function count(value) {
  return value < 1e6 ? WHOLE.format(value) : COMPACT.format(value);
}

/** A time that is given in microseconds. */
export function duration(us) {
  if (us < 1000) return `${SHORT.format(us)}\u00a0µs`;
  return us < 1e6 ? `${SHORT.format(us / 1000)}\u00a0ms` : `${SHORT.format(us / 1e6)}\u00a0s`;
}

/** Bytes, in powers of 1,024 where that is whole, and else of 1,000. */
export function bytes(value) {
  if (value < 1024) return `${SHORT.format(value)}\u00a0B`;
  if (value % 1024 === 0 && value < 1024 ** 2) return `${WHOLE.format(value / 1024)}\u00a0KiB`;
  const power = Math.min(3, Math.floor(Math.log10(value) / 3));
  return `${SHORT.format(value / 1000 ** power)}\u00a0${["B", "kB", "MB", "GB"][power]}`;
}

/** A part of one. */
export function percent(part) {
  if (part === 1) return "100\u00a0%";
  return `${(100 * part).toFixed(part > 0.999 ? 2 : 1)}\u00a0%`;
}

/** So many times as much: two digits, or all before the point. */
export function ratio(value) {
  return `${value < 10 ? value.toPrecision(2) : WHOLE.format(value)}\u00a0×`;
}
