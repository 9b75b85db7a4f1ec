// How numbers are written: what is not 0 or 1 does not read so. Python has the same rule: `explain/wording.py`.
const ONE = 0.999999; // from here on a number is 1: sums of float32 weights miss it by less than 1e-6

/** How far from 0 the farthest number is; 0 where there is none. */
export function farthestOf(values: (number | null)[] | Float32Array): number {
  return (values as number[]).reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
}

/** A number with so many decimals, halves to even as Python has them; 0 has no sign. */
export function rounded(value: number, digits: number): string {
  const size = Math.abs(value);
  const half = (size * 10 ** digits) % 2 === 0.5 && /^50*$/.test(size.toFixed(99).slice(digits - 99)); // behind an even digit
  const text = (half ? size * (1 - 1e-15) : size).toFixed(digits);
  return (value < 0 && +text ? "−" : "") + text;
}

/** A number with its sign and so many decimals, or as many as two digits that count need. */
export function withSign(value: number, digits: number): string {
  return (value > 0 ? "+" : "") + rounded(value, Math.max(digits, digitsOf(value)));
}

/** Decimals with which a number has two digits that count. */
function digitsOf(value: number): number {
  return value ? Math.min(9, 1 - Math.floor(Math.log10(Math.abs(value)))) : 0;
}

/** A number from 0 to 1 in a sentence: two decimals, or as many as tell it from 0 and from 1. */
export function told(value: number): string {
  return fixed(value, value < 0.1 ? digitsOf(value) : value < ONE && value >= 0.995 ? digitsOf(1 - value) : 2);
}

/** A number with so many decimals; of a fraction "<0.01" for what is not 0, ">0.99" for what is not 1. unbounded: it is no fraction, such as a score. */
export function fixed(value: number, digits: number, unbounded = false): string {
  const text = rounded(value, digits);
  if (unbounded || value <= 0) return text;
  if (!+text) return "<" + rounded(10 ** -digits, digits);
  return digits > 1 && +text === 1 && value < ONE ? ">" + rounded(1 - 10 ** -digits, digits) : text;
}

/** What a place of a picture says of its number: its unit and the number, or that there is none. */
export function quantity(value: number | null | undefined, unit: string, digits: number, unbounded = false): string {
  return value == null ? "no number" : (unit && unit + " ") + fixed(value, digits, unbounded);
}
