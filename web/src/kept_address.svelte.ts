// The address of a page in a file: what is looked at stands behind its #, so that a link or a reload shows the same again.
import type { Page } from "./data/format";
import type { PageState } from "./page_state.svelte";

const KEPT = ["view", "call", "head", "token", "side", "words", "choices", "map", "cloud"] as const;

/** Look where the address says, as far as the page has it, and keep the address at what is looked at from then on. */
export function keepAddress(shared: PageState): void {
  const kept = (from: PageState) => Object.fromEntries(KEPT.map((key) => [key, from[key]]));
  const told = () => JSON.stringify(kept(shared));
  try {
    const found = JSON.parse(decodeURIComponent(location.hash.slice(1))) as PageState;
    if (fits(found, shared.page)) Object.assign(shared, kept(found));
  } catch {
    // nothing that can be read: the page opens as it does
  }
  let last = told(); // as long as nothing else is looked at, the address stays as it is
  $effect.root(() => {
    $effect(() => {
      const now = told();
      if (now === last) return;
      last = now;
      try {
        history.replaceState(null, "", `#${encodeURIComponent(now)}`);
      } catch {
        // a frame that may not
      }
    });
  });
}

/** Whether a page has what an address tells of. */
function fits({ view, call, head, token, side, choices }: PageState, { calls, texts }: Page): boolean {
  const below = (value: number | null, count: number) => value === null || (Number.isInteger(value) && value >= 0 && value < count);
  if (typeof view !== "string" || !(choices instanceof Object)) return false;
  if (!calls.length) return true;
  const seen = calls[call];
  if (!seen) return false;
  return below(head, seen.heads) && below(token, texts[side === "receives" ? seen.keys : seen.queries]!.tokens.text.length);
}
