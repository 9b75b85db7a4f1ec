// Which of many points is nearest to a place: points sorted into the cells of a grid, of which few are looked through.

const SHARE = 3; // points a cell, were they spread evenly
const MOST = 1024; // cells along a side

export interface Grid {
  points: ArrayLike<number>; // x and y of each, one after the other
  side: number; // cells along it
  low: [number, number]; // the least x and y
  cell: [number, number]; // width and height
  first: ArrayLike<number>; // of each cell, and one more: where its points begin
  sorted: ArrayLike<number>; // the points, cell by cell
}

/** The least and the largest x, then those of y. */
export function endsOf(points: ArrayLike<number>): [number, number, number, number] {
  const ends: [number, number, number, number] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let n = 0; n < points.length; n += 2) {
    ends[0] = Math.min(ends[0], points[n]!);
    ends[1] = Math.max(ends[1], points[n]!);
    ends[2] = Math.min(ends[2], points[n + 1]!);
    ends[3] = Math.max(ends[3], points[n + 1]!);
  }
  return ends;
}

export function gridOf(points: ArrayLike<number>): Grid {
  const count = points.length / 2;
  const side = Math.max(1, Math.min(MOST, Math.ceil(Math.sqrt(count / SHARE))));
  const [left, right, down, up] = endsOf(points);
  const grid: Grid = { points, side, low: [left, down], cell: [(right - left) / side || 1, (up - down) / side || 1], first: [], sorted: [] };
  const of = new Uint32Array(count);
  const first = new Uint32Array(side * side + 1);
  for (let n = 0; n < count; n++) {
    of[n] = index(grid, 1, points[2 * n + 1]!) * side + index(grid, 0, points[2 * n]!);
    first[of[n]! + 1]!++;
  }
  for (let n = 1; n < first.length; n++) first[n]! += first[n - 1]!;
  const next = first.slice();
  const sorted = new Uint32Array(count);
  for (let n = 0; n < count; n++) sorted[next[of[n]!]!++] = n;
  return { ...grid, first, sorted };
}

/** The point nearest to a place, of two as near the one of the lower number; -1 where none is within reach. */
export function nearest(grid: Grid, x: number, y: number, reach: number): number {
  for (const within of [reach / 8, reach / 3, reach]) {
    const found = nearestWithin(grid, x, y, within);
    if (found >= 0) return found;
  }
  return -1;
}

function nearestWithin(grid: Grid, x: number, y: number, reach: number): number {
  const { points, side, first, sorted } = grid;
  let [found, least] = [-1, reach * reach];
  const [left, right] = [index(grid, 0, x - reach), index(grid, 0, x + reach)];
  const [down, up] = [index(grid, 1, y - reach), index(grid, 1, y + reach)];
  for (let row = down; row <= up; row++) {
    const end = first[row * side + right + 1]!;
    for (let at = first[row * side + left]!; at < end; at++) {
      const n = sorted[at]!;
      const far = (points[2 * n]! - x) ** 2 + (points[2 * n + 1]! - y) ** 2;
      if (far < least || (far === least && (found < 0 || n < found))) [found, least] = [n, far];
    }
  }
  return found;
}

/** Which row or column a coordinate lies in, the nearest one of what lies outside. */
function index({ side, low, cell }: Grid, axis: 0 | 1, value: number): number {
  return Math.max(0, Math.min(side - 1, Math.floor((value - low[axis]) / cell[axis])));
}
