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

/** What is usual in each cell, at most its value: the median of its column from the first to the last above 0 or, if that is more, at its distance. */
export function usualOf({ rows, cols, values }: Coarse): Float32Array {
  const lane = new Float32Array(rows);
  /** Of the cells from one on, downwards or along a diagonal; 0 where few are above 0. */
  const median = (row: number, col: number, right: number) => {
    let n = 0;
    for (; row < rows && col < cols; row++, col += right) lane[n++] = values[row * cols + col]!;
    const all = lane.subarray(0, n);
    const own = all.subarray(all.findIndex((value) => value > 0), all.findLastIndex((value) => value > 0) + 1).sort();
    return own.length < rows / 10 ? 0 : own[own.length >> 1]!;
  };
  const ofColumn = Float32Array.from({ length: cols }, (_, c) => median(0, c, 0));
  const ofDistance = Float32Array.from({ length: rows + cols - 1 }, (_, n) => median(Math.max(0, n - cols + 1), Math.max(0, cols - 1 - n), 1));
  const out = values.slice();
  for (let r = 0, n = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++, n++) out[n] = Math.min(out[n]!, Math.max(ofColumn[c]!, ofDistance[r - c + cols - 1]!));
  }
  return out;
}
