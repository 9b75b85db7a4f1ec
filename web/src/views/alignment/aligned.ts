// Cross-attention as words of a target by words of its source: as each is written, or as each is read.
//
// Row i of a decoder reads target token i and writes token i + 1, so a target token has two rows: the one before it, which
// writes it, and its own, which reads it.
import { weightsOfUnits, type Unit } from "../../words";

export type Rows = "written" | "read";

/** Take the weights of an (L, S) matrix together by units, as `weightsOfUnits` does, a target unit's rows as its queries. A unit that has no row (as the first token, which nothing writes) is null. */
export function byUnits(weights: ArrayLike<number>, size: number, targets: Unit[], sources: Unit[], rows: Rows): (Float32Array | null)[] {
  return targets.map(([start, end]) => {
    const back = rows === "written" ? 1 : 0;
    const [first, last] = [Math.max(0, start - back), end - back];
    return first < last ? weightsOfUnits((i, j) => weights[i * size + j]!, [[first, last]], sources) : null;
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
