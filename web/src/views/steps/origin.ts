// Where a number of the diagram came from: a sentence with the numbers it is made of, and the cells they stand in.
import { normFactors, projected } from "../../attention/block";
import type { PageState } from "../../page_state.svelte";
import { headNumber, readable } from "../../words";
import { scaleName, type StepId, type Way } from "./way";

export interface Place {
  id: StepId;
  row: number | null; // null: every row
  from: number; // components [from, to)
  to: number;
}

export interface Origin {
  says: string;
  number: string; // as the sentence has it
  places: Place[]; // of the numbers that it is made of
}

/** A number as sentences have it: five figures. */
export function figure(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value).replace("-Infinity", "−∞");
  const size = Math.abs(value);
  const written = size >= 1e5 || size < 1e-4 ? value.toExponential(4) : value.toPrecision(5);
  return written.replace("-", "−").replace("e−", "e-");
}

/** Say where the number at a row and component of a step came from. */
export function originOf(way: Way, shared: PageState, id: StepId, row: number, at: number): Origin {
  const step = way.steps.get(id)!;
  const number = figure(step.values[(step.rows === 1 ? 0 : row) * step.width + at]!);
  return { ...sentenceOf(way, shared, id, row, at, number), number };
}

function sentenceOf(way: Way, shared: PageState, id: StepId, row: number, at: number, number: string): Omit<Origin, "number"> {
  const call = shared.page.calls[way.call]!;
  const named = headNumber(call, way.head);
  const own = `“${readable(shared.page.texts[call.queries]!.tokens.text[way.token]!)}”`;
  const key = way.keys[row] ?? 0;
  const name = `“${readable(shared.page.texts[call.keys]!.tokens.text[key]!)}”`;
  const step = (which: StepId) => way.steps.get(which)!;
  const value = (which: StepId, r = row, c = 0) => step(which).values[r * step(which).width + c]!;
  const all = (which: StepId, r: number | null = row): Place[] =>
    way.steps.has(which) ? [{ id: which, row: r, from: 0, to: step(which).width }] : [];
  const one = (which: StepId, r: number | null, c: number): Place[] => (way.steps.has(which) ? [{ id: which, row: r, from: c, to: c + 1 }] : []);
  const before = way.steps.has("biased") ? "biased" : way.steps.has("capped") ? "capped" : "scaled";
  const score = way.row.scores[key]!;
  const n = (which: number) => figure(which);

  switch (id) {
    case "entering":
      return { says: `${name} as it enters layer ${call.layer}, component ${at}: ${number}.`, places: [] };
    case "query":
      return {
        says: `query of ${own}, component ${at}: ${number}; from ${own} as it enters, by row ${at} of head ${named}’s W_Q, and by its position where the model rotates queries.`,
        places: way.keys.includes(way.token) ? all("entering", way.keys.indexOf(way.token)) : [],
      };
    case "keys":
      return {
        says: `key of ${name}, component ${at}: ${number}; from ${name} as it enters, by row ${at} of head ${named}’s W_K, and by its position where the model rotates keys.`,
        places: all("entering"),
      };
    case "products": {
      const parts = Array.from({ length: step("keys").width }, (_, d) => value("query", 0, d) * value("keys", row, d));
      const most = parts.reduce((best, part, d) => (Math.abs(part) > Math.abs(parts[best]!) ? d : best), 0);
      return {
        says: `q · k of ${name} = ${number}: the sum of ${parts.length} products, the largest of component ${most}: ${n(value("query", 0, most))} × ${n(value("keys", row, most))} = ${n(parts[most]!)}.`,
        places: [...all("query", 0), ...all("keys")],
      };
    }
    case "scaled":
      return {
        says: `score of ${name} = q · k × ${scaleName(call.scale, call.width)} = ${n(value("products"))} × ${n(call.scale)} = ${number}.`,
        places: [...all("query", 0), ...all("keys"), ...all("products")],
      };
    case "capped": {
      const cap = n(call.softcap!);
      return { says: `capped score of ${name} = ${cap} × tanh(${n(value("scaled"))} / ${cap}) = ${number}.`, places: all("scaled") };
    }
    case "biased": {
      const from = way.steps.has("capped") ? "capped" : "scaled";
      return { says: `score of ${name} with its bias = ${n(value(from))} + ${n(value("biased") - value(from))} = ${number}.`, places: all(from) };
    }
    case "scores":
      return score === -Infinity
        ? { says: `${own} can't look at ${name}: the score becomes −∞, the weight 0.`, places: all(before) }
        : { says: `${own} can look at ${name}: the score stays ${number}.`, places: all(before) };
    case "exponentials": {
      const sink = call.sinks ? ` or the sink’s, ${n(call.sinks[way.head]!)}` : "";
      return {
        says: `exp(score − m) of ${name} = exp(${n(score)} − ${n(way.row.largest)}) = ${number}; m is the largest score of all ${way.row.scores.length}${sink}.`,
        places: all(way.steps.has("scores") ? "scores" : before),
      };
    }
    case "weights": {
      if (call.ablated.includes(way.head)) return { says: `Head ${named} is ablated: its weights are 0.`, places: [] };
      const sink = call.sinks ? ` and the sink’s ${n(Math.exp(call.sinks[way.head]! - way.row.largest))}` : "";
      return {
        says: `weight of ${name} = ${n(way.row.exponentials[key]!)} / ${n(way.row.total)} = ${number}; ${n(way.row.total)} is the sum of all ${way.row.weights.length} exponentials${sink}.`,
        places: all("exponentials", null),
      };
    }
    case "values":
      return {
        says: `value of ${name}, component ${at}: ${number}; from ${name} as it enters, by row ${at} of head ${named}’s W_V.`,
        places: all("entering"),
      };
    case "weighted":
      return {
        says: `weight × value of ${name}, component ${at} = ${n(value("weights"))} × ${n(value("values", row, at))} = ${number}.`,
        places: [...all("weights"), ...one("values", row, at)],
      };
    case "context": {
      const more = way.row.weights.length - way.keys.length;
      return {
        says: `context of head ${named}, component ${at} = the sum of that component of weight × value over all ${way.row.weights.length} tokens${more > 0 ? `, ${more} of them not shown` : ""} = ${number}.`,
        places: one("weighted", null, at),
      };
    }
    case "joined": {
      const each = way.loaded!.each;
      const head = Math.floor(at / each);
      return {
        says: `component ${at % each} of head ${headNumber(call, head)}’s context: ${number}${head === way.head ? "" : " (choose that head to see its path)"}.`,
        places: head === way.head ? one("context", 0, at % each) : [],
      };
    }
    case "projected": {
      const part = projected(way.loaded!, way.weights!, way.contexts!, way.head)[at]!;
      const bias = way.loaded!.bias ? " plus its bias" : "";
      return {
        says: `attention's output, component ${at} = row ${at} of W_O · the joined contexts${bias} = ${number}; head ${named}’s part of it is ${n(part)}.`,
        places: all("joined", 0),
      };
    }
    case "residual":
      return { says: `${own} as it came, component ${at}: ${number}.`, places: [] };
    case "total":
      return {
        says: `component ${at} of the sum = ${n(value("projected", 0, at))} + ${n(value("residual", 0, at))} = ${number}.`,
        places: [...one("projected", 0, at), ...one("residual", 0, at)],
      };
    case "normed": {
      const norm = way.loaded!.norm!;
      const { mean, spread } = normFactors(norm, step("total").values as Float64Array);
      const weight = norm.weight ? ` × ${n(norm.weight[at]!)}` : "";
      const bias = norm.bias ? ` + ${n(norm.bias[at]!)}` : "";
      return {
        says: `component ${at} of the ${norm.kind} = (${n(value("total", 0, at))} − ${n(mean)}) / ${n(spread)}${weight}${bias} = ${number}.`,
        places: all("total", 0),
      };
    }
  }
}
