// What the lines between two columns of tokens are of: one token in every head, or all tokens in the mean of some heads.
import type { PageState, Side } from "../page_state.svelte";

export const MOST = 400; // tokens of a column that are shown whole
export const PART = 200; // of a longer one

export type Range = [number, number]; // tokens [start, end)

/** What a token gives to, or gets from, every token of the other side in every head, (H, other). */
export async function everyHead(shared: PageState, call: number, side: Side, token: number, signal: AbortSignal): Promise<Float32Array> {
  if (side === "gives") return shared.attention.rowOfHeads(call, token, signal);
  const { heads } = shared.page.calls[call]!;
  const columns = await Promise.all(Array.from({ length: heads }, (_, h) => shared.attention.column(call, h, token, signal)));
  const out = new Float32Array(heads * columns[0]!.length);
  columns.forEach((column, h) => out.set(column, h * column.length));
  return out;
}

/** The mean over some heads of numbers (H, size). */
export function meanOf(perHead: Float32Array, size: number, heads: number[]): Float32Array {
  const out = new Float64Array(size);
  for (const h of heads) for (let n = 0; n < size; n++) out[n]! += perHead[h * size + n]! / heads.length;
  return Float32Array.from(out);
}

/** The weights between two ranges of tokens in the mean of some heads, (own, other). */
export async function between(
  shared: PageState,
  call: number,
  side: Side,
  heads: number[],
  own: Range,
  other: Range,
  signal: AbortSignal,
): Promise<Float32Array> {
  const [queries, keys] = side === "gives" ? [own, other] : [other, own];
  const [rows, cols] = [queries[1] - queries[0], keys[1] - keys[0]];
  const all = heads.length === shared.page.calls[call]!.heads;
  const each = await Promise.all(
    (all ? [null] : heads).map((head) => shared.attention.region(call, { head, queries, keys, rows, cols }, signal)),
  );
  const mean = meanOf(Float32Array.from(each.flatMap((part) => [...part])), rows * cols, [...each.keys()]);
  if (side === "gives") return mean;
  return Float32Array.from({ length: rows * cols }, (_, n) => mean[(n % rows) * cols + Math.floor(n / rows)]!);
}

/** The tokens that are shown of a column: all, or of more than can be shown a part that starts near a token. */
export function shownOf(count: number, first: number): Range {
  if (count <= MOST) return [0, count];
  const start = Math.max(0, Math.min(count - PART, Math.round(first)));
  return [start, start + PART];
}
