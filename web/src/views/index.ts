// The views of a page, in the order of their tabs. Each is a component that takes the shared alone.
import type { Component } from "svelte";
import type { Page } from "../data/format";
import type { PageState } from "../page_state.svelte";
import Compare from "./Compare.svelte";
import Alignment from "./Alignment.svelte";
import Generation from "./Generation.svelte";
import Heads from "./Heads.svelte";
import Lines from "./Lines.svelte";
import Panel from "./Panel.svelte";
import Map from "./Map.svelte";
import Steps from "./Steps.svelte";
import Tokens from "./Tokens.svelte";

export interface View {
  id: string; // as Opening.view names it
  name: string;
  component: Component<{ shared: PageState }>;
  has(page: Page): boolean; // whether the page carries what it shows
  own?: true; // has no use for the choice of text, layer and head above the views
}

/** Whether weights are computed here, from numbers that the page carries. */
function computed(page: Page): boolean {
  return page.calls.length > 0 && !page.calls.some((call) => call.served);
}

export const VIEWS: View[] = [
  { id: "tokens", name: "Tokens", component: Tokens, has: computed },
  { id: "lines", name: "Lines", component: Lines, has: computed },
  { id: "heads", name: "Heads", component: Heads, has: (page) => computed(page) && (page.calls.some((call) => call.heads > 1) || page.calls.length > 1) },
  { id: "map", name: "Map", component: Map, has: (page) => page.calls.length > 0 },
  { id: "compare", name: "Compare", component: Compare, has: (page) => computed(page) && (page.calls.length > 1 || page.calls.some((call) => call.heads > 1)), own: true },
  { id: "steps", name: "Steps", component: Steps, has: computed },
  { id: "alignment", name: "Alignment", component: Alignment, has: (page) => page.alignment.some((each) => each.calls.length > 0) },
  { id: "generation", name: "Generation", component: Generation, has: (page) => page.generation.some((each) => each.steps.length > 0) },
];

/** The views that a page has: those that it carries something for, and one for each of its panels. */
export function viewsOf(page: Page): View[] {
  const panels = page.panels.map((panel, n): View => ({ id: `panel ${n}`, name: panel.name, component: Panel, has: () => true, own: true }));
  return [...VIEWS.filter((view) => view.has(page)), ...panels];
}

/** The id of a view's tab in the document: "panel 2" may not stand there with its blank. */
export function tabOf(shared: PageState, view: string): string {
  return `${shared.id}-tab-${view.replace(" ", "-")}`;
}

/** Where the focus is: the document, or the shadow tree that a notebook put the page into. */
export function focusedTree(): Document | ShadowRoot {
  let tree: Document | ShadowRoot = document;
  while (tree.activeElement?.shadowRoot) tree = tree.activeElement.shadowRoot;
  return tree;
}
