// Which keys a query may attend to: a band around the diagonal, or runs of keys for each query.
import { decode, type Source, type Values } from "../data/bytes";
import type { Call, Numbers, Page } from "../data/format";

export type LoadedMask =
  | { kind: "band"; low: number; high: number }
  | { kind: "runs"; heads: number; first: Int32Array; starts: Int32Array; ends: Int32Array };

/** Decode a call's mask; null where every query may attend to every key. */
export async function loadMask({ mask }: Call, read: (numbers: Numbers) => Promise<Values>): Promise<LoadedMask | null> {
  if (!mask) return null;
  if (mask.kind === "band") return { kind: "band", low: mask.low ?? -Infinity, high: mask.high ?? Infinity };
  const [first, starts, ends] = (await Promise.all([mask.first, mask.starts, mask.ends].map(read))) as Int32Array[];
  return { kind: "runs", heads: mask.heads, first: first!, starts: starts!, ends: ends! };
}

/** Whether query i may attend to key j in a head; head null: in any. */
export function allows(mask: LoadedMask | null, head: number | null, i: number, j: number): boolean {
  if (!mask) return true;
  if (mask.kind === "band") return mask.low <= j - i && j - i <= mask.high;
  const heads = head === null ? [...Array(mask.heads).keys()] : [Math.min(head, mask.heads - 1)];
  const rows = mask.first.length / mask.heads;
  return heads.some((h) => inRuns(mask.starts, mask.ends, mask.first[h * rows + i]!, mask.first[h * rows + i + 1]!, j));
}

/** Whether a key is in one of the runs [from, to), which are in order: the last that starts at or before it has it, or none. */
function inRuns(starts: Int32Array, ends: Int32Array, from: number, to: number, key: number): boolean {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= key) low = middle + 1;
    else high = middle;
  }
  return low > from && key < ends[low - 1]!;
}

/** Make what reads the masks of a page's calls, by their numbers, each once. */
export function maskReader(page: Page, source: Source): (call: number) => Promise<LoadedMask | null> {
  const held = new Map<number, Promise<LoadedMask | null>>();
  return (call) => {
    if (!held.has(call)) held.set(call, loadMask(page.calls[call]!, (numbers) => decode(numbers, source.bytes(numbers.at))));
    return held.get(call)!;
  };
}
