// The largest weight in one token's rows: which head gives it, and to whom.
import type { PageState } from "../page_state.svelte";
import { lastWord } from "../words";

export interface Largest {
  call: number;
  head: number;
  key: number;
  weight: number;
}

/** The token whose rows are told: the chosen one where it looks at others, else the text's last word. */
export function rowToken(shared: PageState): number | null {
  const self = shared.description.queries === shared.description.keys;
  return (shared.side === "gives" || self ? shared.token : null) ?? lastWord(shared.queries);
}

/** The largest weight that the heads of some calls give in a token's rows: of all keys, and of those that are neither special
 *  tokens nor sinks; null where nothing is given. */
export async function largestOfRows(shared: PageState, calls: number[], token: number, signal: AbortSignal): Promise<[Largest | null, Largest | null]> {
  const rows = await Promise.all(calls.map((call) => shared.attention.rowOfHeads(call, token, signal)));
  const { special, sinks, text } = shared.keys.tokens;
  const apart = new Set([...special, ...sinks]);
  let [every, others]: (Largest | null)[] = [null, null];
  rows.forEach((weights, c) =>
    weights.forEach((weight, n) => {
      const key = n % text.length;
      const found = { call: calls[c]!, head: Math.floor(n / text.length), key, weight };
      if (weight > (every?.weight ?? 0)) every = found;
      if (weight > (others?.weight ?? 0) && !apart.has(key)) others = found;
    }),
  );
  return [every, others];
}
