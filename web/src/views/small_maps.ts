// One head's whole matrix in few cells: of long texts as the library made it, in its number of cells, else from queries and keys.
import { coarseOf } from "../map/overview";
import type { Call } from "../data/format";
import type { PageState } from "../page_state.svelte";
import { unitsOf, weightsOfUnits } from "../words";
import { back } from "../written";
import { apartOf } from "./reading";

export const [SMALL, LARGE] = [32, 256]; // cells of a side that calls of long texts have, as src/regard/web/call.py has them

export interface SmallMap {
  rows: number;
  cols: number;
  values: Float32Array; // (rows, cols), each the mean weight of a cell
  apart: boolean[]; // columns of one special token or sink alone; none where cells have several tokens
  largest: number; // of the columns that do not stand apart, or of all where no other has any
}

/** Reads small maps of a page's calls. */
export class SmallMaps {
  constructor(
    private readonly shared: PageState,
    private readonly side: number,
  ) {}

  /** The matrix of a head (null: the mean of all) in at most side × side cells. */
  async read(call: number, head: number | null, signal?: AbortSignal): Promise<SmallMap> {
    const { page, attention, source } = this.shared;
    const description = page.calls[call]!;
    const [queries, keys] = sizes(description);
    const few = this.side === LARGE ? description.overview : this.side === SMALL || description.overview ? description.small : null;
    const made = back(this.shared, call) ? null : few;
    const { rows, cols } = made ?? { rows: Math.min(this.side, queries), cols: Math.min(this.side, keys) };
    const values = made
      ? (await coarseOf(made, head, source)).values
      : await attention.region(call, { head, queries: [0, queries], keys: [0, keys], rows, cols }, signal);
    const text = page.texts[description.keys]!;
    const apart = cols === keys ? apartOf(text, unitsOf(text, false)) : [];
    return { rows, cols, values, apart, largest: largestIn(values, apart) };
  }

  /** The matrix of a head with a row and a column for each word. */
  async readWords(call: number, head: number | null, signal?: AbortSignal): Promise<SmallMap> {
    const { page, attention } = this.shared;
    const description = page.calls[call]!;
    const [rows, cols] = sizes(description);
    const weights = await attention.region(call, { head, queries: [0, rows], keys: [0, cols], rows, cols }, signal);
    const [queries, keys] = [unitsOf(page.texts[description.queries]!, true), unitsOf(page.texts[description.keys]!, true)];
    const values = weightsOfUnits((i, j) => weights[i * cols + j]!, queries, keys);
    const apart = apartOf(page.texts[description.keys]!, keys);
    return { rows: queries.length, cols: keys.length, values, apart, largest: largestIn(values, apart) };
  }
}

/** How many queries and keys a call has. */
export function sizes(call: Call): [number, number] {
  return [call.query.values.shape[1]!, call.key.values.shape[1]!];
}

/** The largest of a map's cells in columns that do not stand apart, or of all where no other has any. */
export function largestIn(values: Float32Array, apart: boolean[]): number {
  let [largest, all] = [0, 0];
  for (let n = 0; n < values.length; n++) {
    const value = values[n]!;
    if (value > all) all = value;
    if (value > largest && !apart[n % apart.length]) largest = value;
  }
  return largest > 0 ? largest : all;
}
