// What the lines between two columns of tokens are of: one token in every head, or all tokens in the mean of some heads.
import type { PageState, Side } from "../page_state.svelte";
import { weightsOfUnits, type Unit } from "../words";

export const MOST = 100; // tokens, or words, of a column that are shown whole
export const PART = 60; // of a longer one
const LARGEST = 24; // of a longer one with the largest weights: a screen has room for their lines

export type Range = [number, number]; // units [start, end)

/** What a unit gives to, or gets from, every unit of the other side in every head, (H, units). */
export async function everyHead(
  shared: PageState,
  call: number,
  side: Side,
  [start, end]: Unit,
  units: Unit[],
  signal: AbortSignal,
): Promise<Float32Array> {
  const { attention, page } = shared;
  const own: Unit[] = [[0, end - start]];
  const heads = [...Array(page.calls[call]!.heads).keys()];
  const tokens = [...Array(end - start).keys()].map((n) => start + n);
  const out = new Float32Array(heads.length * units.length);
  if (side === "gives") {
    const rows = await Promise.all(tokens.map((token) => attention.rowOfHeads(call, token, signal)));
    const size = rows[0]!.length / heads.length;
    for (const h of heads) out.set(weightsOfUnits((n, key) => rows[n]![h * size + key]!, own, units), h * units.length);
    return out;
  }
  const columns = await Promise.all(heads.map((h) => Promise.all(tokens.map((token) => attention.column(call, h, token, signal)))));
  columns.forEach((each, h) => out.set(weightsOfUnits((query, n) => each[n]![query]!, units, own), h * units.length));
  return out;
}

/** The mean over some heads of numbers (H, size). */
export function meanOf(perHead: Float32Array, size: number, heads: number[]): Float32Array {
  const out = new Float64Array(size);
  for (const h of heads) for (let n = 0; n < size; n++) out[n]! += perHead[h * size + n]! / heads.length;
  return Float32Array.from(out);
}

/** The weights between some units of both sides, each side's one after the other, in the mean of some heads, (own, other). */
export async function between(
  shared: PageState,
  call: number,
  side: Side,
  heads: number[],
  own: Unit[],
  other: Unit[],
  signal: AbortSignal,
): Promise<Float32Array> {
  const [givers, receivers] = side === "gives" ? [own, other] : [other, own];
  if (!givers.length || !receivers.length) return new Float32Array();
  const [queries, keys] = [givers, receivers].map((units): Unit => [units[0]![0], units.at(-1)![1]]) as [Unit, Unit];
  const [rows, cols] = [queries[1] - queries[0], keys[1] - keys[0]];
  const all = heads.length === shared.page.calls[call]!.heads;
  const each = await Promise.all(
    (all ? [null] : heads).map((head) => shared.attention.region(call, { head, queries, keys, rows, cols }, signal)),
  );
  const ofTokens = meanOf(Float32Array.from(each.flatMap((part) => [...part])), rows * cols, [...each.keys()]);
  const mean = weightsOfUnits((query, key) => ofTokens[(query - queries[0]) * cols + key - keys[0]]!, givers, receivers);
  if (side === "gives") return mean;
  const [down, across] = [own.length, other.length];
  return Float32Array.from(mean, (_, n) => mean[(n % across) * down + Math.floor(n / across)]!);
}

/** The units that are shown of a column: all, or of more than can be shown a part that starts near one of them. */
export function shownOf(count: number, first: number): Range {
  if (count <= MOST) return [0, count];
  const start = Math.max(0, Math.min(count - PART, Math.round(first)));
  return [start, start + PART];
}

/** The numbers from start to before end. */
export function numbersOf([start, end]: Range): number[] {
  return Array.from({ length: end - start }, (_, n) => start + n);
}

/** The numbers of the units with the largest values, ascending. */
export function largestOnes(values: Float32Array): number[] {
  const order = [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
  return order.slice(0, LARGEST).sort((a, b) => a - b);
}
