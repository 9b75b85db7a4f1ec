// What is shown when the map has come to rest: its cells counted for the colours, and the largest of them for the table.
import { shown, type Plot } from "./draw";
import { cellOf, SIDE } from "./pyramid";
import { Counts } from "./shades";
import type { Picture } from "./tiles";

export interface ShownCell {
  queries: [number, number];
  keys: [number, number];
  mean: number; // of all its weights: the weight itself where it is one
}

export interface Settled {
  counts: Counts;
  largest: ShownCell[];
  queries: [number, number]; // that are shown
  keys: [number, number];
  cell: number; // tokens a cell, each way
  exact: boolean; // whether every cell shown has been computed
}

/** Count the cells that a window shows, and find the `few` largest. */
export function settle(plot: Plot, level: number, pictures: Picture[], few: number, exact: boolean): Settled {
  const cell = cellOf(level);
  const [keys, queries] = shown(plot);
  const counts = new Counts();
  let best: { value: number; i: number; j: number }[] = [];
  for (const { tile, values, there } of pictures) {
    const [down, right] = [tile.row * SIDE, tile.col * SIDE]; // in cells
    const rows = within(queries, cell, down);
    const cols = within(keys, cell, right);
    for (let r = rows[0]; r < rows[1]; r++) {
      if (!there[r]) continue;
      counts.add(values, SIDE, [r, r + 1], cols);
      for (let n = r * SIDE + cols[0]; n < r * SIDE + cols[1]; n++) {
        const value = values[n]!;
        if (!(value > 0) || (best.length === few && value <= best[few - 1]!.value)) continue;
        best.push({ value, i: down + r, j: right + (n - r * SIDE) });
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
  return { counts, largest, queries, keys, cell, exact };
}

/** The cells of a tile, from its first at `from`, that have any of the tokens [first, end). */
function within([first, end]: [number, number], cell: number, from: number): [number, number] {
  return [Math.max(0, Math.floor(first / cell) - from), Math.min(SIDE, Math.ceil(end / cell) - from)];
}

/** First and last of a half-open range, in words. */
export function range([first, end]: [number, number]): string {
  return end - first === 1 ? String(first) : `${first}–${end - 1}`;
}
