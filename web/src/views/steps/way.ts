// One token's way through one head: every step as rows of numbers, in the order in which each follows from those before.
import { back } from "../../written";
import { joined, loadSteps, normed, projected, valuesOf, type LoadedSteps } from "../../attention/block";
import type { RowSteps } from "../../attention/row_steps";
import type { StepsData } from "../../data/format";
import type { PageState } from "../../page_state.svelte";
import { rounded } from "../../parts/numbers";
import { headNumber, readable } from "../../words";

export type StepId =
  | "entering" | "query" | "keys" | "products" | "scaled" | "capped" | "biased" | "scores" | "exponentials" | "weights"
  | "values" | "weighted" | "context" | "joined" | "projected" | "residual" | "total" | "normed"; // prettier-ignore

export interface Step {
  id: StepId;
  title: string;
  values: ArrayLike<number>; // rows × width
  rows: number;
  width: number;
  signed: boolean;
}

/** Which token, head and call, and the keys that are drawn: all, or of many those with the largest weights. */
export interface Way {
  call: number;
  head: number;
  token: number;
  keys: number[]; // drawn, in the order of the text
  row: RowSteps;
  steps: Map<StepId, Step>;
  loaded: LoadedSteps | null; // values and what follows them, where the page carries them
  weights: Float32Array | null; // (H, S) of the token
  contexts: Float64Array | null;
}

export const DRAWN = 24; // keys

/** The keys with the largest weights, in the order of the text. */
export function largestKeys(weights: Float32Array, few = DRAWN): number[] {
  const order = [...weights.keys()].sort((a, b) => weights[b]! - weights[a]! || a - b);
  return order.slice(0, few).sort((a, b) => a - b);
}

/** How a factor is written: 1/√32 where it is that. */
export function scaleName(scale: number, width: number): string {
  return Math.abs(scale - width ** -0.5) < 1e-6 ? `1/√${width}` : String(Number(scale.toPrecision(4)));
}

/** Reads the steps that a page carries, each call's once. */
export class StepsReader {
  private readonly held = new Map<number, Promise<LoadedSteps>>();

  constructor(private readonly shared: PageState) {}

  /** What the page carries of a call beside queries and keys. */
  dataOf(call: number): StepsData | null {
    return this.shared.page.steps.find((each) => each.call === call) ?? null;
  }

  /** Compute the way of a token through a head. */
  async way(call: number, head: number, token: number, signal: AbortSignal): Promise<Way> {
    const { attention, page, source } = this.shared;
    const description = page.calls[call]!;
    const row = await attention.rowSteps(call, head, token, signal);
    const keys = largestKeys(row.weights);
    const data = this.dataOf(call);
    if (data && !this.held.has(call)) this.held.set(call, loadSteps(data, source));
    const [vectors, loaded, weights] = await Promise.all([
      attention.vectors(call, head, token, keys, signal),
      this.held.get(call) ?? null,
      data ? attention.rowOfHeads(call, token + back(this.shared, call), signal) : null,
    ]);
    const { width } = description;
    const steps = new Map<StepId, Step>();
    const add = (id: StepId, title: string, values: ArrayLike<number>, rows: number, signed = true) =>
      steps.set(id, { id, title, values, rows, width: values.length / rows, signed });
    const drawn = (values: ArrayLike<number>) => Float32Array.from(keys, (j) => values[j]!);
    const contexts = loaded && weights ? joined(loaded, weights) : null;
    const name = `“${readable(page.texts[description.queries]!.tokens.text[token]!)}”`;

    if (loaded?.entering && description.part === "self") {
      const wide = loaded.data.entering!.values.shape.at(-1)!;
      const states = new Float32Array(keys.length * wide);
      keys.forEach((j, n) => states.set(loaded.entering!.subarray(j * wide, (j + 1) * wide), n * wide));
      add("entering", description.layer === 0 ? "embeddings, as they enter layer 0" : `enters layer ${description.layer}`, states, keys.length);
    }
    add("query", `query of ${name} (W_Q)`, vectors.subarray(0, width), 1);
    add("keys", "keys (W_K)", vectors.subarray(width), keys.length);
    add("products", "query · key", drawn(row.products), keys.length);
    add("scaled", `× ${scaleName(description.scale, width)}`, drawn(row.scaled), keys.length);
    if (description.softcap !== null) add("capped", `capped at ${description.softcap}`, drawn(row.capped), keys.length);
    if (description.bias) add("biased", "+ bias", drawn(row.biased), keys.length);
    if (row.scores.some((score) => score === -Infinity)) add("scores", "mask", drawn(row.scores), keys.length);
    add("exponentials", `exp(s − ${rounded(row.largest, 2)})`, drawn(row.exponentials), keys.length, false);
    add("weights", `÷ ${Number(row.total.toPrecision(5))} = weight`, drawn(row.weights), keys.length, false);
    if (!loaded || !contexts) return { call, head, token, keys, row, steps, loaded: null, weights: null, contexts: null };

    const { each, groups } = loaded;
    const values = valuesOf(loaded, Math.floor((head * groups) / description.heads), keys);
    add("values", "values (W_V)", values, keys.length);
    add("weighted", "weight × value", values.map((value, n) => value * row.weights[keys[Math.floor(n / each)]!]!), keys.length);
    add("context", `sum: head ${headNumber(description, head)}’s context`, contexts.subarray(head * each, (head + 1) * each), 1);
    add("joined", `the contexts of all ${description.heads} heads side by side, ${each} components each`, contexts, 1);
    const { refused, kind } = loaded.data;
    const { norm } = loaded;
    if (refused === null && weights && (loaded.projection || loaded.projected) && loaded.residual) {
      const added = projected(loaded, weights, contexts);
      const residual = loaded.residual.subarray(token * added.length, (token + 1) * added.length);
      const total = added.map((value, m) => value + residual[m]!);
      add("projected", "after W_O: attention's output", added, 1);
      add("residual", `+ ${name} as it entered: the residual`, residual, 1);
      add("total", `= their sum${norm ? "" : AFTER[kind ?? ""] ?? ""}`, total, 1);
      if (norm) add("normed", "normalized: enters the feed-forward layer", normed(norm, total), 1);
    }
    return { call, head, token, keys, row, steps, loaded, weights, contexts };
  }
}

/** What is done with the sum where no norm stands behind it. */
const AFTER: Record<string, string> = {
  "pre-norm": ": leaves the attention block (the norm came before it)",
  parallel: ": in parallel, the feed-forward layer adds its output",
};
