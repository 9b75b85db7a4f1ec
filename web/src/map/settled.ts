// What is shown when the map has come to rest: the value of its darkest colour, and the largest cells for the table.
import { shown, type Plot } from "./draw";
import { cellOf, SIDE } from "./pyramid";
import type { Picture } from "./tiles";

export interface ShownCell {
  queries: [number, number];
  keys: [number, number];
  mean: number; // of all its weights: the weight itself where it is one
}

export interface Settled {
  darkest: number; // value of the darkest colour; below 0 where nothing is there
  largest: ShownCell[];
  queries: [number, number]; // that are shown
  keys: [number, number];
  cell: number; // tokens a cell, each way
  exact: boolean; // whether every cell shown has been computed
}

/** Find the `few` largest cells that a window shows, and the largest for colours, of single columns that do not stand apart where there are such. */
export function settle(plot: Plot, level: number, pictures: Picture[], few: number, exact: boolean, apart: boolean[] = []): Settled {
  const cell = cellOf(level);
  const [keys, queries] = shown(plot);
  const greys = cell === 1 && !apart.slice(...keys).every(Boolean) ? apart : [];
  let darkest = -1;
  let best: { value: number; i: number; j: number }[] = [];
  for (const { tile, values, there } of pictures) {
    const [down, right] = [tile.row * SIDE, tile.col * SIDE]; // in cells
    const rows = within(queries, cell, down);
    const cols = within(keys, cell, right);
    for (let r = rows[0]; r < rows[1]; r++) {
      if (!there[r]) continue;
      for (let c = cols[0]; c < cols[1]; c++) {
        const value = values[r * SIDE + c]!;
        if (value > darkest && !greys[right + c]) darkest = value;
        if (!(value > 0) || (best.length === few && value <= best[few - 1]!.value)) continue;
        best.push({ value, i: down + r, j: right + c });
        best.sort((a, b) => b.value - a.value);
        best = best.slice(0, few);
      }
    }
  }
  const largest = best.map(({ value, i, j }) => ({
    queries: [i * cell, Math.min(plot.length, (i + 1) * cell)] as [number, number],
    keys: [j * cell, Math.min(plot.size, (j + 1) * cell)] as [number, number],
    mean: value,
  }));
  return { darkest, largest, queries, keys, cell, exact };
}

/** The cells of a tile, from its first at `from`, that have any of the tokens [first, end). */
function within([first, end]: [number, number], cell: number, from: number): [number, number] {
  return [Math.max(0, Math.floor(first / cell) - from), Math.min(SIDE, Math.ceil(end / cell) - from)];
}

/** First and last of a half-open range, in words. */
export function range([first, end]: [number, number]): string {
  return end - first === 1 ? String(first) : `${first}–${end - 1}`;
}
