// One query's row step by step, from q · k to the weights, and the vectors that it is made of.
import type { LoadedCall } from "./loaded";
import { finished, runs } from "./weights";

/** What becomes of one query's row on its way to the weights, in order; after them the row maximum and the row sum. */
export const ROW_STEPS = ["products", "scaled", "capped", "biased", "scores", "exponentials", "weights"] as const;
export type RowSteps = Record<(typeof ROW_STEPS)[number], Float32Array> & { largest: number; total: number };

/** Compute every step of a query's row in one head, (steps · S + 2,): `unpackRow` names them.
 *
 *  products = q · k; scaled = scale · products; capped as the softcap has it; biased = capped + bias; scores: -∞ where the
 *  mask forbids; exponentials = exp(scores − row maximum); weights = exponentials / row sum. */
export function rowSteps(call: LoadedCall, head: number, i: number): Float32Array {
  const { width, size, query, key, scale, softcap } = call;
  const out = new Float32Array(ROW_STEPS.length * size + 2);
  const row = head * call.length + i;
  const [max, sum] = [call.rowMax[row]!, call.rowSum[row]!];
  const allowed = new Uint8Array(size);
  for (const [start, end] of runs(call, head, i)) allowed.fill(1, start, end);
  const factor = call.ablated.has(head) ? 0 : 1 / sum;
  const q = row * width;
  const k = Math.floor(head / call.share) * size * width;
  for (let j = 0; j < size; j++) {
    let scaled = 0;
    for (let d = 0; d < width; d++) scaled += query[q + d]! * key[k + j * width + d]!;
    const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
    const biased = finished(call, head, i, j, scaled);
    const exponential = allowed[j] && max !== -Infinity ? Math.exp(biased - max) : 0;
    const steps = [scaled / scale, scaled, capped, biased, allowed[j] ? biased : -Infinity, exponential, exponential * factor];
    steps.forEach((value, n) => (out[n * size + j] = value));
  }
  out.set([max, sum], ROW_STEPS.length * size);
  return out;
}

/** Name the steps of `rowSteps`. */
export function unpackRow(packed: Float32Array): RowSteps {
  const size = (packed.length - 2) / ROW_STEPS.length;
  const named = Object.fromEntries(ROW_STEPS.map((name, n) => [name, packed.subarray(n * size, (n + 1) * size)]));
  return { ...(named as Record<(typeof ROW_STEPS)[number], Float32Array>), largest: packed.at(-2)!, total: packed.at(-1)! };
}

/** The query i of a head and some of the keys that it is compared with, (1 + keys, D), before the scale. */
export function vectors(call: LoadedCall, head: number, i: number, keys: number[]): Float32Array {
  const { width, query, key, scale } = call;
  const out = new Float32Array((1 + keys.length) * width);
  const q = (head * call.length + i) * width;
  const k = Math.floor(head / call.share) * call.size * width;
  for (let d = 0; d < width; d++) out[d] = query[q + d]! / scale;
  keys.forEach((j, n) => out.set(key.subarray(k + j * width, k + (j + 1) * width), (n + 1) * width));
  return out;
}
