// Attention weights of rows and columns, from queries and keys: plain loops, no matrix of L × S.
//
//     score  = softcap · tanh(q · k / softcap) + bias, where the mask allows; the scale is in q already
//     weight = exp(score − row maximum) / row sum
import type { LoadedCall } from "./loaded";

/** The keys [start, end) that query i of a head may attend to, as runs. */
export function runs(call: LoadedCall, head: number, i: number): [number, number][] {
  const { mask, size } = call;
  if (!mask) return [[0, size]];
  if (mask.kind === "band") {
    const start = Math.max(0, i + mask.low);
    const end = Math.min(size, i + mask.high + 1);
    return start < end ? [[start, end]] : [];
  }
  const at = Math.min(head, mask.heads - 1) * (call.length + 1) + i;
  const found: [number, number][] = [];
  for (let run = mask.first[at]!; run < mask.first[at + 1]!; run++) found.push([mask.starts[run]!, mask.ends[run]!]);
  return found;
}

/** Compute the weights of query i of a head on keys [from, to), added to out[0 … to − from) times a factor. */
export function addRow(
  call: LoadedCall,
  head: number,
  i: number,
  from: number,
  to: number,
  out: Float32Array | Float64Array,
  at = 0,
  factor = 1,
): void {
  if (call.ablated.has(head)) return;
  const { width, key, query } = call;
  const row = head * call.length + i;
  const max = call.rowMax[row]!;
  const share = factor / call.rowSum[row]!;
  if (max === -Infinity) return; // no key at all
  const q = row * width;
  const k = Math.floor(head / call.share) * call.size * width;
  for (const [first, last] of runs(call, head, i)) {
    const start = Math.max(first, from);
    const end = Math.min(last, to);
    for (let j = start; j < end; j++) {
      const base = k + j * width;
      let a = 0;
      let b = 0;
      let d = 0;
      for (; d + 1 < width; d += 2) {
        a += query[q + d]! * key[base + d]!;
        b += query[q + d + 1]! * key[base + d + 1]!;
      }
      if (d < width) a += query[q + d]! * key[base + d]!;
      out[at + j - from]! += Math.exp(finished(call, head, i, j, a + b) - max) * share;
    }
  }
}

/** What becomes of the product of a query and a key: capped, with its bias. */
export function finished(call: LoadedCall, head: number, i: number, j: number, product: number): number {
  const score = call.softcap === null ? product : call.softcap * Math.tanh(product / call.softcap);
  const { bias } = call;
  if (!bias) return score;
  const h = Math.min(head, bias.heads - 1);
  if (bias.kind === "offsets") return score + bias.values[h * (call.length + call.size - 1) + j - i + call.length - 1]!;
  if (bias.kind === "keys") return score + bias.values[h * call.size + j]!;
  return score + bias.values[(h * call.length + i) * call.size + j]!;
}

/** The heads of a choice: one, or all of them for their mean. */
export function headsOf(call: LoadedCall, head: number | null): number[] {
  return head === null ? Array.from({ length: call.heads }, (_, h) => h) : [head];
}

/** Compute what a query gives to every key, (S,); head null: the mean of all heads. */
export function row(call: LoadedCall, head: number | null, i: number): Float32Array {
  const out = new Float64Array(call.size);
  const heads = headsOf(call, head);
  for (const h of heads) addRow(call, h, i, 0, call.size, out, 0, 1 / heads.length);
  return Float32Array.from(out);
}

/** Compute what a query gives to every key in every head, (H, S). */
export function rowOfHeads(call: LoadedCall, i: number): Float32Array {
  const out = new Float32Array(call.heads * call.size);
  for (let h = 0; h < call.heads; h++) addRow(call, h, i, 0, call.size, out, h * call.size);
  return out;
}

/** Compute all weights of every head of a short text, (H, L, S). */
export function whole(call: LoadedCall): Float32Array {
  const out = new Float32Array(call.heads * call.length * call.size);
  for (let h = 0, at = 0; h < call.heads; h++) for (let i = 0; i < call.length; i++, at += call.size) addRow(call, h, i, 0, call.size, out, at);
  return out;
}

/** Compute what a key gets from every query, (L,). */
export function column(call: LoadedCall, head: number | null, j: number): Float32Array {
  const out = new Float64Array(call.length);
  const heads = headsOf(call, head);
  for (const h of heads) {
    for (let i = 0; i < call.length; i++) addRow(call, h, i, j, j + 1, out, i, 1 / heads.length);
  }
  return Float32Array.from(out);
}
