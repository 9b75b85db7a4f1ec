// Cross-attention as words of a target by words of its source.
import { weightsOfUnits, type Unit } from "../../words";

/** Take the weights of an (L, S) matrix together by units, as `weightsOfUnits` does, a target unit's rows as its queries. The first `back` tokens have none, as nothing writes the first: a unit without one is null. */
export function byUnits(weights: ArrayLike<number>, size: number, targets: Unit[], sources: Unit[], back: number): (Float32Array | null)[] {
  return targets.map(([start, end]) => {
    const first = Math.max(back, start);
    return first < end ? weightsOfUnits((i, j) => weights[i * size + j]!, [[first, end]], sources) : null;
  });
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
