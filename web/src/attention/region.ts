// Mean weights of the cells of a region: the loop that a map of many millions of weights waits for.
//
// Two queries meet four keys at a time, their eight sums in registers, in float64: a JavaScript engine then needs about
// 0.5 ns a product where the plain loop of weights.ts needs 1.9, and rounds nothing more. Keys that a mask forbids are
// left out by their ranges.
import type { LoadedCall } from "./loaded";
import { finished, headsOf, runs } from "./weights";

/** A part of the matrix, shown as rows × cols cells: cell r has queries ⌊r · n / rows⌋ to ⌊(r + 1) · n / rows⌋ of its n.
 *  A part may reach beyond the first or last query or key: a cell is the mean of those weights that there are, 0 where none is. */
export interface Region {
  head: number | null;
  queries: [number, number];
  keys: [number, number];
  rows: number;
  cols: number;
}

const PANEL = 1024; // keys that are met by all queries before the next: 512 kB at width 64, which a core's own cache holds

/** Compute a region, each cell the true mean of its weights, (rows, cols). */
export function region(call: LoadedCall, part: Region): Float32Array {
  const heads = headsOf(call, part.head);
  const across = edgesOf(part.queries, part.rows, call.length);
  const along = edgesOf(part.keys, part.cols, call.size);
  const sums = new Float64Array(part.rows * part.cols);
  for (const head of heads) if (!call.ablated.has(head)) addHead(call, head, across, along, sums);
  const out = new Float32Array(sums.length);
  for (let r = 0; r < part.rows; r++) {
    const deep = (across[r + 1]! - across[r]!) * heads.length;
    for (let c = 0; c < part.cols; c++) {
      const count = deep * (along[c + 1]! - along[c]!);
      if (count > 0) out[r * part.cols + c] = sums[r * part.cols + c]! / count;
    }
  }
  return out;
}

/** Where cells begin and end, the last one's end too. */
function edgesOf([first, last]: [number, number], cells: number, end: number): Int32Array {
  return Int32Array.from({ length: cells + 1 }, (_, n) => Math.max(0, Math.min(end, first + Math.floor((n * (last - first)) / cells))));
}

/** Add the weights of a head to the sums of the cells. */
function addHead(call: LoadedCall, head: number, across: Int32Array, along: Int32Array, sums: Float64Array): void {
  const { width } = call;
  const cols = along.length - 1;
  const [top, bottom] = [across[0]!, across.at(-1)!];
  const [left, right] = [along[0]!, along.at(-1)!];
  if (top >= bottom || left >= right) return;
  const key = packedKeys(call, Math.floor(head / call.share));
  const query = Float64Array.from(call.query.subarray((head * call.length + top) * width, (head * call.length + bottom) * width));
  const reach = Array.from({ length: bottom - top }, (_, n) => runs(call, head, top + n));
  const products = [new Float64Array(PANEL + 8), new Float64Array(PANEL + 8)];
  for (let from = left - (left % 4); from < right; from += PANEL) {
    const [start, end] = [Math.max(left, from), Math.min(right, from + PANEL)];
    for (let i = top, r = 0; i < bottom; i += 2) {
      const last = Math.min(i + 1, bottom - 1); // the second of the two, or the first again where there is no other
      const met = union(reach[i - top]!, reach[last - top]!, start, end);
      for (const [a, b] of met) multiply(query, key, (i - top) * width, (last - top) * width, width, a, b, from, products[0]!, products[1]!);
      for (let q = i; q <= last; q++) {
        while (q >= across[r + 1]!) r++;
        const row = head * call.length + q;
        if (call.rowMax[row] === -Infinity) continue; // no key at all
        for (const [a, b] of reach[q - top]!) {
          addWeights(call, head, q, Math.max(a, start), Math.min(b, end), products[q - i]!, from, along, sums, r * cols);
        }
      }
    }
  }
}

/** The stretches of keys in [start, end) that either of two queries may attend to. */
function union(one: [number, number][], other: [number, number][], start: number, end: number): [number, number][] {
  const found: [number, number][] = [];
  for (const [a, b] of [...one, ...other].sort((x, y) => x[0] - y[0])) {
    const [from, to] = [Math.max(a, start), Math.min(b, end)];
    if (from >= to) continue;
    const before = found.at(-1);
    if (before && from <= before[1] + 4) before[1] = Math.max(before[1], to);
    else found.push([from, to]);
  }
  return found;
}

/** Compute the products of two queries, at x and y, with keys [start, end), in whole fours: one[j − from], two[j − from]. */
function multiply(
  query: Float64Array,
  key: Float64Array,
  x: number,
  y: number,
  width: number,
  start: number,
  end: number,
  from: number,
  one: Float64Array,
  two: Float64Array,
): void {
  for (let j = start - (start % 4); j < end; j += 4) {
    let a0 = 0, a1 = 0, a2 = 0, a3 = 0; // prettier-ignore
    let b0 = 0, b1 = 0, b2 = 0, b3 = 0; // prettier-ignore
    let k = j * width;
    for (let d = 0; d < width; d++, k += 4) {
      const a = query[x + d]!;
      const b = query[y + d]!;
      const k0 = key[k]!;
      const k1 = key[k + 1]!;
      const k2 = key[k + 2]!;
      const k3 = key[k + 3]!;
      a0 += a * k0;
      a1 += a * k1;
      a2 += a * k2;
      a3 += a * k3;
      b0 += b * k0;
      b1 += b * k1;
      b2 += b * k2;
      b3 += b * k3;
    }
    const n = j - from;
    one[n] = a0;
    one[n + 1] = a1;
    one[n + 2] = a2;
    one[n + 3] = a3;
    two[n] = b0;
    two[n + 1] = b1;
    two[n + 2] = b2;
    two[n + 3] = b3;
  }
}

/** Add the weights of query i on keys [start, end) to the sums of its cells, which begin at `at`. */
function addWeights(
  call: LoadedCall,
  head: number,
  i: number,
  start: number,
  end: number,
  products: Float64Array,
  from: number,
  along: Int32Array,
  sums: Float64Array,
  at: number,
): void {
  if (start >= end) return;
  const row = head * call.length + i;
  const max = call.rowMax[row]!;
  const share = 1 / call.rowSum[row]!;
  const plain = call.softcap === null && !call.bias;
  const cols = along.length - 1;
  let c = Math.min(cols - 1, Math.floor(((start - along[0]!) * cols) / (along[cols]! - along[0]!)));
  while (c > 0 && along[c]! > start) c--;
  while (along[c + 1]! <= start) c++;
  for (let j = start; j < end; c++) {
    const stop = Math.min(end, along[c + 1]!);
    let sum = 0;
    if (plain) for (; j < stop; j++) sum += exp(products[j - from]! - max);
    else for (; j < stop; j++) sum += exp(finished(call, head, i, j, products[j - from]!) - max);
    sums[at + c]! += sum * share;
  }
}

// 2^(−n / 16), from which exp is put together: within 1e-11 of its value, at a third of Math.exp's time.
const POWERS = Float64Array.from({ length: 16 * 160 }, (_, n) => 2 ** (-n / 16));
const SIXTEENTHS = 16 / Math.LN2;
const SIXTEENTH = Math.LN2 / 16;

/** Compute exp(x) for scores below their row's maximum, or above by rounding alone; 0 below what a float32 can hold. */
export function exp(x: number): number {
  if (!(x > -104)) return Number.isNaN(x) ? x : 0;
  const n = x < 0 ? (-x * SIXTEENTHS) | 0 : 0;
  const r = x + n * SIXTEENTH;
  return r > 0.05 ? Math.exp(x) : POWERS[n]! * (1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r / 120)))));
}

let packed: { of: Float32Array; heads: Map<number, Float64Array> } | null = null;

/** A key head's vectors in fours: number d of keys 4n to 4n + 3 side by side. Those of the last call are kept. */
function packedKeys(call: LoadedCall, head: number): Float64Array {
  if (packed?.of !== call.key) packed = { of: call.key, heads: new Map() };
  const found = packed.heads.get(head);
  if (found) return found;
  const { width, size } = call;
  const values = new Float64Array(Math.ceil(size / 4) * 4 * width);
  for (let j = 0; j < size; j++) {
    const from = (head * size + j) * width;
    const to = (j - (j % 4)) * width + (j % 4);
    for (let d = 0; d < width; d++) values[to + 4 * d] = call.key[from + d]!;
  }
  packed.heads.set(head, values);
  return values;
}
