// From weights to shades, by their square root. A table of 65,536 colours, by the upper bits of a float32 (the value to within
// 0.4 %, finer than a shade), colours a million cells in a few milliseconds.
import { shade, table, type Scale } from "../parts/colours";

const CODES = 1 << 16;
const LOWER = 15; // bits left out: positive float32 numbers grow with their bits

/** The colour of every code, as a canvas keeps it (ABGR on machines of today). largest: the value of the darkest. */
export function palette(largest: number, dark: boolean, scale: Scale = "weights"): Uint32Array {
  const colours = Uint32Array.from(table(scale, dark), ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0);
  const value = new Float32Array(1);
  const bits = new Uint32Array(value.buffer);
  return Uint32Array.from({ length: CODES }, (_, code) => {
    bits[0] = (code << LOWER) | (code ? 1 << (LOWER - 1) : 0);
    return colours[shade(value[0]!, largest)]!;
  });
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
