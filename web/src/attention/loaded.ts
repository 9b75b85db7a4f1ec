// One attention call with its numbers decoded: what weights are computed from.
import { decode, type Values } from "../data/bytes";
import type { Call, Numbers, Vectors } from "../data/format";
import { loadMask, type LoadedMask } from "./mask";

export interface LoadedCall {
  heads: number; // H
  share: number; // query heads a key head
  length: number; // L
  size: number; // S
  width: number; // D
  query: Float32Array; // (H, L, D), times the scale
  key: Float32Array; // (G, S, D)
  rowMax: Float32Array; // (H, L)
  rowSum: Float32Array; // (H, L)
  scale: number;
  softcap: number | null;
  mask: LoadedMask | null;
  bias: LoadedBias | null;
  ablated: Set<number>;
}

export interface LoadedBias {
  kind: "offsets" | "keys" | "dense";
  heads: number;
  values: Float32Array;
}

/** All numbers that a call names, so that they can be sent to where it is computed. */
export function numbersOf(call: Call): Numbers[] {
  const mask = call.mask?.kind === "runs" ? [call.mask.first, call.mask.starts, call.mask.ends] : [];
  const vectors = [call.query, call.key].flatMap((v) => [v.values, v.scales]);
  return [...vectors, call.row_max, call.row_sum, ...mask, ...(call.bias ? [call.bias.values] : [])];
}

/** Decode a call. bytes: the deflated bytes of each of `numbersOf`, by their number. */
export async function load(call: Call, bytes: Map<number, Uint8Array>): Promise<LoadedCall> {
  const read = (numbers: Numbers): Promise<Values> => decode(numbers, bytes.get(numbers.at)!);
  const vectors = async (v: Vectors): Promise<Float32Array> =>
    scaled(await read(v.values), (await read(v.scales)) as Float32Array, v.values.shape.at(-1)!);
  const [query, key, rowMax, rowSum] = await Promise.all([
    vectors(call.query),
    vectors(call.key),
    read(call.row_max),
    read(call.row_sum),
  ]);
  for (let n = 0; n < query.length; n++) query[n]! *= call.scale;
  const mask = await loadMask(call, read);
  const bias = call.bias && {
    kind: call.bias.kind,
    heads: call.bias.heads,
    values: (await read(call.bias.values)) as Float32Array,
  };
  return {
    heads: call.heads,
    share: call.heads / call.key_heads,
    length: call.query.values.shape[1]!,
    size: call.key.values.shape[1]!,
    width: call.width,
    query,
    key,
    rowMax: rowMax as Float32Array,
    rowSum: rowSum as Float32Array,
    scale: call.scale,
    softcap: call.softcap,
    mask,
    bias,
    ablated: new Set(call.ablated),
  };
}

/** Turn int16 vectors into numbers, each by its scale. */
export function scaled(values: Values, scales: Float32Array, width: number): Float32Array {
  const numbers = new Float32Array(values.length);
  for (let vector = 0, n = 0; vector < scales.length; vector++) {
    const scale = scales[vector]!;
    for (let d = 0; d < width; d++, n++) numbers[n] = values[n]! * scale;
  }
  return numbers;
}
