// The levels of a map: at level z a cell is 2^z × 2^z weights, and a tile is SIDE × SIDE cells.
import type { Call } from "../data/format";

export const SIDE = 128; // cells of a tile, each way: small, so that little is computed beside what is in sight

export interface Tile {
  level: number;
  row: number;
  col: number;
}

/** A window on the matrix: token `left` (a fraction too) at x = 0, `top` at y = 0, each token `pixels` wide and high. */
export interface Window {
  left: number;
  top: number;
  pixels: number;
  width: number;
  height: number;
}

export function keyOf({ level, row, col }: Tile): string {
  return `${level}/${row}/${col}`;
}

/** The number of weights a cell has each way. */
export function cellOf(level: number): number {
  return 2 ** level;
}

/** The level whose cells are at least one pixel of the screen wide, and less than two. */
export function levelFor(pixels: number, ratio: number): number {
  return Math.max(0, Math.ceil(-Math.log2(pixels * ratio) - 1e-9));
}

/** The coarsest level that is of use: the whole matrix in one tile. */
export function topLevel(length: number, size: number): number {
  return Math.max(0, Math.ceil(Math.log2(Math.max(length, size) / SIDE)));
}

/** The queries and keys of a tile; of those at the end some may not exist. */
export function partOf({ level, row, col }: Tile): { queries: [number, number]; keys: [number, number] } {
  const side = SIDE * cellOf(level);
  return { queries: [row * side, (row + 1) * side], keys: [col * side, (col + 1) * side] };
}

/** The tiles of a level that a window shows, those nearest to its middle first. */
export function tilesIn(window: Window, level: number, length: number, size: number): Tile[] {
  const side = SIDE * cellOf(level);
  const rows = span(window.top, window.height / window.pixels, side, length);
  const cols = span(window.left, window.width / window.pixels, side, size);
  const tiles = rows.flatMap((row) => cols.map((col) => ({ level, row, col })));
  const x = (window.left + window.width / window.pixels / 2) / side - 0.5;
  const y = (window.top + window.height / window.pixels / 2) / side - 0.5;
  const far = (tile: Tile) => Math.max(Math.abs(tile.row - y), Math.abs(tile.col - x));
  return tiles.sort((a, b) => far(a) - far(b));
}

/** Whether a window shows any of a tile. */
export function inWindow(tile: Tile, window: Window): boolean {
  const side = SIDE * cellOf(tile.level);
  const [x, y] = [tile.col * side - window.left, tile.row * side - window.top];
  return x < window.width / window.pixels && y < window.height / window.pixels && x + side > 0 && y + side > 0;
}

function span(from: number, wide: number, side: number, end: number): number[] {
  const first = Math.max(0, Math.floor(from / side));
  const last = Math.min(Math.ceil(end / side), Math.ceil((from + wide) / side));
  return Array.from({ length: Math.max(0, last - first) }, (_, n) => first + n);
}

/** The four tiles of the next finer level that a tile covers, of those that have any weights. */
export function children({ level, row, col }: Tile, length: number, size: number): Tile[] {
  const side = SIDE * cellOf(level - 1);
  return [0, 1]
    .flatMap((r) => [0, 1].map((c) => ({ level: level - 1, row: 2 * row + r, col: 2 * col + c })))
    .filter((tile) => tile.row * side < length && tile.col * side < size);
}

/** Whether the mask leaves a query of [top, bottom) any key of [left, right), as far as the mask is a band. */
export function reachable(call: Call, top: number, bottom: number, left: number, right: number): boolean {
  if (call.mask?.kind !== "band") return true;
  const { low, high } = call.mask; // low ≤ j − i ≤ high
  return (high === null || left - (bottom - 1) <= high) && (low === null || right - 1 - top >= low);
}

const PRODUCTS = 2 ** 25; // of a job: about 16 ms, so that one that is no longer wanted is soon over

/** The bands of a tile, each computed at one go: rows of cells [first, last). */
export function bandsOf(tile: Tile, call: Call, length: number, size: number, heads: number): [number, number][] {
  const { queries, keys } = partOf(tile);
  const cell = cellOf(tile.level);
  const rows = Math.min(SIDE, Math.ceil((Math.min(length, queries[1]) - queries[0]) / cell));
  const wide = Math.min(size, keys[1]) - keys[0];
  const deep = Math.max(1, Math.floor(PRODUCTS / (wide * cell * call.width * heads)));
  const bands: [number, number][] = [];
  for (let first = 0; first < rows; first += deep) {
    const last = Math.min(rows, first + deep);
    if (reachable(call, queries[0] + first * cell, Math.min(length, queries[0] + last * cell), keys[0], keys[0] + wide)) {
      bands.push([first, last]);
    }
  }
  return bands;
}
