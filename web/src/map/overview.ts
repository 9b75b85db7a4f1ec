// The small picture that a call may carry: what is shown until exact tiles are there.
import { decode, type Source, type Values } from "../data/bytes";
import type { Call } from "../data/format";
import { colour } from "./shades";

export interface Coarse {
  rows: number;
  cols: number;
  values: Float32Array; // (rows, cols) means
}

const decoded = new WeakMap<Call, Promise<Values>>(); // all heads are in one piece

/** Decode the overview of a head, or the mean of all heads'; null where the call carries none. */
export async function coarseOf(call: Call, head: number | null, source: Source): Promise<Coarse | null> {
  const { overview } = call;
  if (!overview) return null;
  if (!decoded.has(call)) decoded.set(call, decode(overview.values, source.bytes(overview.values.at)));
  const codes = (await decoded.get(call))!;
  const { rows, cols, largest } = overview;
  const values = new Float32Array(rows * cols);
  const heads = head === null ? largest.map((_, h) => h) : [head];
  for (const h of heads) {
    for (let n = 0; n < values.length; n++) {
      values[n]! += (largest[h]! * (codes[h * values.length + n]! / 65535) ** 2) / heads.length;
    }
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
