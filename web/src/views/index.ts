// What a page is shown with: the views that a bundle has, in the order of their tabs, and its panels.
import type { Component } from "svelte";
import type { Attention } from "../attention/client";
import type { Source } from "../data/bytes";
import type { Cloud, Page, Panel as PanelData, Paths } from "../data/format";
import type { PageState } from "../page_state.svelte";
import Panel from "./Panel.svelte";

export interface View {
  id: string; // as Opening.view names it
  name: string;
  component: Component<{ shared: PageState }>;
  has(page: Page): boolean; // whether the page carries what it shows
  own?: true; // has no use for the choice of text, layer and head above the views
}

export type Numbers = Exclude<PanelData, Paths | Cloud>; // what NumbersPanel shows
type Shows<P> = Component<{ panel: P; number: number; shared: PageState }>; // number: of the page's panels

/** What one of the built files can show. Which of them a page takes, src/regard/web/built_page.py chooses. */
export interface Bundle {
  views: View[]; // beside the panels
  NumbersPanel?: Shows<Numbers>;
  PathsPanel?: Shows<Paths>;
  attention?: {
    Controls: Component<{ shared: PageState }>;
    attend: (page: Page, source: Source) => Attention;
    maskReader: (page: Page, source: Source) => PageState["maskOf"];
  }; // where it can compute weights
}

/** The views that a page has: those that it carries something for, and one for each of its panels. */
export function viewsOf(page: Page, { views }: Bundle): View[] {
  const panels = page.panels.map((panel, n): View => ({ id: `panel ${n}`, name: panel.name, component: Panel, has: () => true, own: true }));
  return [...views.filter((view) => view.has(page)), ...panels];
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
