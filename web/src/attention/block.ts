// What follows the weights of one token: the heads' contexts, joined, projected by W_O, added to the residual, normed.
//
//     context = Σ weight × value; joined = the contexts of all heads; projected = scale · (W_O · joined + bias)
//     total   = residual + projected; normed = norm(total), where the norm stands behind the residual
import { decode, type Source } from "../data/bytes";
import type { Numbers, StepsData, Vectors } from "../data/format";
import { scaled } from "./loaded";

export interface LoadedNorm {
  kind: NonNullable<StepsData["norm"]>["kind"];
  weight: Float32Array | null;
  bias: Float32Array | null;
  epsilon: number;
}

/** The numbers of StepsData, decoded. */
export interface LoadedSteps {
  data: StepsData;
  value: Float32Array; // (G, S, E)
  groups: number; // G
  size: number; // S
  each: number; // E
  projection: Float32Array | null; // (M, H · E)
  projected: Float32Array | null; // (H, S, M)
  bias: Float32Array | null; // (M,)
  norm: LoadedNorm | null;
  residual: Float32Array | null; // (L, M)
  entering: Float32Array | null; // (L, M)
}

/** Decode what Steps needs of a call. */
export async function loadSteps(data: StepsData, source: Source): Promise<LoadedSteps> {
  const read = async (numbers: Numbers) => (await decode(numbers, source.bytes(numbers.at))) as Float32Array;
  const vectors = async (v: Vectors) =>
    scaled(await read(v.values), await read(v.scales), v.values.shape.at(-1)!);
  const [groups, size, each] = data.value.values.shape as [number, number, number];
  const [value, projection, projected, bias, residual, entering, weight, shift] = await Promise.all([
    vectors(data.value),
    data.projection && read(data.projection),
    data.projected && vectors(data.projected),
    data.projection_bias && read(data.projection_bias),
    data.residual && vectors(data.residual),
    data.entering && vectors(data.entering),
    data.norm?.weight ? read(data.norm.weight) : null,
    data.norm?.bias ? read(data.norm.bias) : null,
  ]);
  const norm = data.norm && { ...data.norm, weight, bias: shift };
  return { data, value, groups, size, each, projection, projected, bias, norm, residual, entering };
}

/** The values that a head weighs, of some keys, (keys, E). */
export function valuesOf(steps: LoadedSteps, group: number, keys: number[]): Float32Array {
  const { value, size, each } = steps;
  const out = new Float32Array(keys.length * each);
  keys.forEach((j, n) => out.set(value.subarray((group * size + j) * each, (group * size + j + 1) * each), n * each));
  return out;
}

/** The contexts of all heads side by side, (H · E). weights: (H, S) of one query. */
export function joined(steps: LoadedSteps, weights: Float32Array): Float64Array {
  const { value, size, each, groups } = steps;
  const heads = weights.length / size;
  const out = new Float64Array(heads * each);
  for (let h = 0; h < heads; h++) {
    const group = Math.floor((h * groups) / heads);
    for (let j = 0; j < size; j++) {
      const weight = weights[h * size + j]!;
      const base = (group * size + j) * each;
      if (weight > 0) for (let e = 0; e < each; e++) out[h * each + e]! += weight * value[base + e]!;
    }
  }
  return out;
}

/** What attention adds to a query, (M,), from the weights of all heads, (H, S), and their contexts; head: of one head alone, without the bias. */
export function projected(steps: LoadedSteps, weights: Float32Array, contexts: Float64Array, head: number | null = null): Float64Array {
  const sums = steps.projected ? sumOf(steps, weights, head) : multiplied(steps, contexts, head);
  return sums.map((sum, m) => (sum + (head === null ? (steps.bias?.[m] ?? 0) : 0)) * steps.data.projection_scale);
}

/** The sum of weight × W_O · value over heads and keys. */
function sumOf({ projected, size }: LoadedSteps, weights: Float32Array, head: number | null): Float64Array {
  const out = new Float64Array(projected!.length / weights.length);
  const [from, to] = head === null ? [0, weights.length] : [head * size, (head + 1) * size];
  for (let n = from; n < to; n++) {
    const weight = weights[n]!;
    if (weight > 0) for (let m = 0; m < out.length; m++) out[m]! += weight * projected![n * out.length + m]!;
  }
  return out;
}

/** W_O · contexts. */
function multiplied({ projection, each }: LoadedSteps, contexts: Float64Array, head: number | null): Float64Array {
  const wide = contexts.length;
  const out = new Float64Array(projection!.length / wide);
  const [from, to] = head === null ? [0, wide] : [head * each, (head + 1) * each];
  for (let m = 0; m < out.length; m++) {
    for (let c = from; c < to; c++) out[m]! += projection![m * wide + c]! * contexts[c]!;
  }
  return out;
}

/** A norm's mean (0 of an RMS norm) and what it divides by. */
export function normFactors(norm: LoadedNorm, values: Float64Array): { mean: number; spread: number } {
  const mean = norm.kind === "layer norm" ? values.reduce((a, b) => a + b, 0) / values.length : 0;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
  return { mean, spread: Math.sqrt(variance + norm.epsilon) };
}

/** Normalise: (values − mean) / spread · weight + bias. */
export function normed(norm: LoadedNorm, values: Float64Array): Float64Array {
  const { mean, spread } = normFactors(norm, values);
  return values.map((value, m) => ((value - mean) / spread) * (norm.weight?.[m] ?? 1) + (norm.bias?.[m] ?? 0));
}
