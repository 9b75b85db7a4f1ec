// What is chosen on the page and the widget's traits are the same: a change on one side is made on the other.
import type { PageState, Side } from "./page_state.svelte";

/** What anywidget gives of the widget in Python. */
export interface Model {
  get(trait: string): unknown;
  set(trait: string, value: unknown): void;
  save_changes(): void;
  on(event: string, told: () => void): void;
  off(event: string, told: () => void): void;
}

const TRAITS = ["text", "layer", "nth", "head", "token", "side", "view"] as const;
type Chosen = Record<(typeof TRAITS)[number], string | number | null>;

/** Keep a page's selection and a widget's traits equal; returns how to end it. views: those that the page has. */
export function keepEqual(shared: PageState, model: Model, views: string[]): () => void {
  let telling = false;
  const fromTraits = () => {
    if (telling) return;
    const wanted = Object.fromEntries(TRAITS.map((trait) => [trait, model.get(trait)])) as Chosen;
    if (!views.includes(wanted.view as string)) wanted.view = views[0] ?? "";
    choose(shared, wanted);
  };
  fromTraits();
  const events = TRAITS.map((trait) => `change:${trait}`);
  for (const event of events) model.on(event, fromTraits);
  const ended = $effect.root(() => {
    $effect(() => {
      const now = chosen(shared);
      const changed = TRAITS.filter((trait) => trait in now && model.get(trait) !== now[trait]);
      telling = true;
      for (const trait of changed) model.set(trait, now[trait]);
      telling = false;
      if (changed.length) model.save_changes();
    });
  });
  return () => {
    ended();
    for (const event of events) model.off(event, fromTraits);
  };
}

/** What is chosen, in the words of the traits; of a page without attention its view alone. */
function chosen(shared: PageState): Partial<Chosen> {
  if (!shared.page.calls.length) return { view: shared.view };
  const { layer, nth } = shared.description;
  const { token, side, view } = shared;
  const head = shared.head === null ? null : shared.numberOf(shared.head);
  return { text: shared.groups[shared.group]!.name, layer, nth, head, token, side, view };
}

/** Choose what the traits say. Several traits of one change may come one after the other: until they fit, nothing is done. */
function choose(shared: PageState, wanted: Chosen): void {
  if (!shared.page.calls.length) shared.view = wanted.view as string;
  const group = shared.groups.find((each) => each.name === wanted.text);
  const call = group?.calls.find((n) => shared.page.calls[n]!.layer === wanted.layer && shared.page.calls[n]!.nth === wanted.nth);
  if (call === undefined) return;
  const { heads, head_numbers, queries, keys } = shared.page.calls[call]!;
  const own = shared.page.texts[wanted.side === "gives" ? queries : keys]!;
  const number = wanted.head as number | null;
  const head = number === null ? null : head_numbers ? head_numbers.indexOf(number) : number;
  const token = wanted.token as number | null;
  if (head !== null && (head < 0 || head >= heads)) return;
  if (token !== null && token >= own.tokens.text.length) return;
  shared.call = call;
  shared.head = head;
  shared.token = token;
  shared.side = wanted.side as Side;
  shared.view = wanted.view as string;
}
