// A small picture of a matrix from a larger one.
import type { Overview } from "../data/format";

/** The overview of a head (null: the mean of all) in fewer cells: each the mean of those of the overview that it covers, by
 *  how many weights each of those is of. codes: its numbers (H, rows, cols). */
export function fewer(
  codes: Uint16Array,
  overview: Overview,
  [queries, keys]: [number, number],
  head: number | null,
  [rows, cols]: [number, number],
): Float32Array {
  const tall = counts(queries, overview.rows);
  const wide = counts(keys, overview.cols);
  const heads = head === null ? overview.largest.map((_, h) => h) : [head];
  const sums = new Float64Array(rows * cols);
  const weights = new Float64Array(rows * cols);
  for (const h of heads) {
    const start = h * overview.rows * overview.cols;
    const largest = overview.largest[h]!;
    for (let r = 0; r < overview.rows; r++) {
      const row = cellOf(r, overview.rows, rows) * cols;
      for (let c = 0; c < overview.cols; c++) {
        const cell = row + cellOf(c, overview.cols, cols);
        const count = tall[r]! * wide[c]!;
        sums[cell]! += largest * (codes[start + r * overview.cols + c]! / 65535) ** 2 * count;
        weights[cell]! += count;
      }
    }
  }
  return Float32Array.from(sums, (sum, n) => sum / weights[n]!);
}

/** How many of n there are in each of so many cells. */
function counts(n: number, cells: number): number[] {
  return Array.from({ length: cells }, (_, r) => Math.floor(((r + 1) * n) / cells) - Math.floor((r * n) / cells));
}

/** The cell of few that a cell of many is in: cell f has those from ⌊f · many / few⌋ on. */
function cellOf(n: number, many: number, few: number): number {
  return Math.floor(((n + 1) * few - 1) / many);
}
