// Four scales from weights to shades, each told in words. A table of 65,536 colours, by the upper bits of a float32 (the
// value to within 0.4 %, finer than a shade), colours a million cells in a few milliseconds.
import { SHADES, table } from "../parts/colours";
import { fixed } from "../parts/numbers";

export type ScaleName = "square root" | "linear" | "log" | "rank";
export const SCALES: ScaleName[] = ["square root", "linear", "log", "rank"];
const DECADES = 5; // of the log scale
const CODES = 1 << 16;
const LOWER = 15; // bits left out: positive float32 numbers grow with their bits

/** What is shown now, counted: the number of cells of each code. */
export class Counts {
  readonly cells = new Uint32Array(CODES);
  total = 0;
  largest = 0;

  /** Count rows [first, last) and columns [left, right) of values that are `wide` a row. */
  add(values: Float32Array, wide: number, [first, last]: [number, number], [left, right]: [number, number]): void {
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    for (let r = first; r < last; r++) {
      for (let n = r * wide + left; n < r * wide + right; n++) {
        this.cells[bits[n]! >>> LOWER]!++;
        if (values[n]! > this.largest) this.largest = values[n]!;
      }
    }
    this.total += Math.max(0, last - first) * Math.max(0, right - left);
  }

  get zeros(): number {
    return this.cells[0]!;
  }
}

/** The colour of every code, as a canvas keeps it (ABGR on machines of today). */
export function palette(scale: ScaleName, counts: Counts, dark: boolean): Uint32Array {
  const colours = Uint32Array.from(table("weights", dark), ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0);
  const out = new Uint32Array(CODES);
  if (scale === "rank") {
    let below = counts.zeros;
    const above = Math.max(1, counts.total - counts.zeros);
    for (let code = 1; code < CODES; code++) {
      const here = counts.cells[code]!;
      out[code] = colours[Math.round(((below - counts.zeros + here / 2) / above) * (SHADES - 1))]!;
      below += here;
    }
    out[0] = colours[0]!;
    return out;
  }
  const value = new Float32Array(1);
  const bits = new Uint32Array(value.buffer);
  for (let code = 0; code < CODES; code++) {
    bits[0] = (code << LOWER) | (code ? 1 << (LOWER - 1) : 0);
    out[code] = colours[Math.round(position(scale, value[0]!, counts.largest) * (SHADES - 1))]!;
  }
  return out;
}

/** Where a value stands between 0 and the largest, from 0 to 1. */
function position(scale: Exclude<ScaleName, "rank">, value: number, largest: number): number {
  if (!(value > 0) || !(largest > 0)) return 0;
  const share = Math.min(1, value / largest);
  if (scale === "linear") return share;
  return scale === "log" ? Math.max(0, 1 + Math.log10(share) / DECADES) : Math.sqrt(share);
}

/** Colour values [first, last) into the pixels of a picture. */
export function colour(values: Float32Array, colours: Uint32Array, pixels: Uint32Array, first: number, last: number): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let n = first; n < last; n++) pixels[n] = colours[bits[n]! >>> LOWER]!;
}

/** The colour of a value among those of a palette, as red, green and blue. */
export function rgbOf(value: number, colours: Uint32Array): [number, number, number] {
  const one = new Float32Array([value]);
  const code = colours[new Uint32Array(one.buffer)[0]! >>> LOWER]!;
  return [code & 255, (code >>> 8) & 255, (code >>> 16) & 255];
}

/** What stands at the two ends of the bar of colours. */
export function legend(scale: ScaleName, { largest, total, zeros }: Counts): { from: string; to: string } {
  const number = (x: number) => (x >= 0.001 || x === 0 ? fixed(x, 3) : x.toExponential(1));
  if (scale === "rank") return { from: "the smallest", to: `the largest, ${number(largest)}, of ${(total - zeros).toLocaleString("en")} cells above 0` };
  return { from: scale === "log" ? `${number(largest * 10 ** -DECADES)} or less` : "0", to: number(largest) };
}
