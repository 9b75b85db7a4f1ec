// The small pictures that a call may carry: what is shown until exact tiles are there, and of a head among many.
import { decode, type Source, type Values } from "../data/bytes";
import type { Overview } from "../data/format";
import { colour } from "./shades";

export interface Coarse {
  rows: number;
  cols: number;
  values: Float32Array; // (rows, cols) means
}

const decoded = new WeakMap<Overview, Promise<Values>>(); // all heads are in one piece

/** Decode the picture of a head, or of the mean of all heads. */
export async function coarseOf(overview: Overview, head: number | null, source: Source): Promise<Coarse> {
  if (!decoded.has(overview)) decoded.set(overview, decode(overview.values, source.bytes(overview.values.at)));
  const codes = (await decoded.get(overview))!;
  const { rows, cols, largest } = overview;
  const values = new Float32Array(rows * cols);
  const heads = head === null ? largest.map((_, h) => h) : [head];
  for (const h of heads) {
    const [first, unit] = [h * values.length, largest[h]! / 65535 ** 2 / heads.length];
    for (let n = 0; n < values.length; n++) values[n]! += unit * codes[first + n]! ** 2;
  }
  return { rows, cols, values };
}

/** A canvas of its size in these colours. */
export function coarsePicture({ rows, cols, values }: Coarse, colours: Uint32Array): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [cols, rows];
  const image = new ImageData(cols, rows);
  colour(values, colours, new Uint32Array(image.data.buffer), 0, values.length);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
}

/** What is usual in each column: the median of its cells from the first to the last above 0; where those are few, what is usual in most columns. */
export function usualOf({ rows, cols, values }: Coarse): Float32Array {
  const column = new Float32Array(rows);
  const usual = Float32Array.from({ length: cols }, (_, c) => {
    for (let r = 0; r < rows; r++) column[r] = values[r * cols + c]!;
    const own = column.subarray(column.findIndex((value) => value > 0), column.findLastIndex((value) => value > 0) + 1).sort();
    return own.length < rows / 10 ? NaN : own[own.length >> 1]!;
  });
  const known = usual.filter((value) => !Number.isNaN(value)).sort();
  return usual.map((value) => (Number.isNaN(value) ? (known[known.length >> 1] ?? 0) : value));
}
