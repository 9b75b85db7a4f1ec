// Cross-attention as words of a target by words of its source: as each is written, or as each is read.
//
// Row i of a decoder reads target token i and writes token i + 1, so a target token has two rows: the one before it, which
// writes it, and its own, which reads it.
import type { Unit } from "../reading";

export type Rows = "written" | "read";

/** Add the weights of an (L, S) matrix up to units: the mean over a target unit's rows, the sum over a source unit's
 *  tokens. A unit that has no row (as the first token, which nothing writes) is null. */
export function byUnits(weights: ArrayLike<number>, size: number, targets: Unit[], sources: Unit[], rows: Rows): (Float32Array | null)[] {
  return targets.map(([start, end]) => {
    const back = rows === "written" ? 1 : 0;
    const [first, last] = [Math.max(0, start - back), end - back];
    if (first >= last) return null;
    const out = new Float32Array(sources.length);
    sources.forEach(([from, to], n) => {
      let sum = 0;
      for (let i = first; i < last; i++) for (let j = from; j < to; j++) sum += weights[i * size + j]!;
      out[n] = sum / (last - first);
    });
    return out;
  });
}

/** The largest weight of the columns that do not stand apart, or of all where no other has any. */
export function largestAmong(matrix: (Float32Array | null)[], apart: boolean[]): number {
  let [own, all] = [0, 0];
  for (const row of matrix) {
    row?.forEach((value, n) => {
      all = Math.max(all, value);
      if (!apart[n]) own = Math.max(own, value);
    });
  }
  return own > 0 ? own : all;
}

/** Which source unit a target's row gives most; those that stand apart left out. Null where there is none. */
export function mostOf(row: Float32Array | null, apart: boolean[]): number | null {
  if (!row) return null;
  let best: number | null = null;
  row.forEach((value, n) => {
    if (!apart[n] && value > (best === null ? 0 : row[best]!)) best = n;
  });
  return best;
}
