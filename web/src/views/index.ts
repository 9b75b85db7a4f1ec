// What a page is shown with: the views that a bundle has, in the order of their tabs, and its panels.
import type { Component, ComponentProps } from "svelte";
import type { Attention } from "../attention/client";
import type { Source } from "../data/bytes";
import type { Cloud, Heat, Opened, Page, Panel as PanelData, Paths, Over } from "../data/format";
import type { Findable } from "../find.svelte";
import type { Group } from "../groups";
import type { PageState } from "../page_state.svelte";
import type HeatMap from "../parts/HeatMap.svelte";
import Panel from "./Panel.svelte";

export interface View {
  id: string; // as Opening.view names it
  name: string;
  component: Component<{ shared: PageState }>;
  has(page: Page): boolean; // whether the page carries what it shows
  shows?: string[]; // ids that it shows, where they are several
  own?: true; // has no use for the choice of text, layer and head above the views
}

export type Numbers = Exclude<PanelData, Paths | Cloud>; // what NumbersPanel shows
type Shows<P> = Component<{ panel: P; number: number; shared: PageState }>; // number: of the page's panels

/** What one of the built files can show. Which of them a page takes, src/regard/web/html_file.py chooses. */
export interface Bundle {
  views: View[]; // beside the panels
  stages?: Partial<Record<Opened["kind"], View["component"]>>; // what the first view, Overview, shows of each kind
  NumbersPanel?: Shows<Numbers>;
  HeatPanels?: View["component"]; // of grids that are alike
  Film?: Component<ComponentProps<typeof HeatMap> & { over: Over; picture?: Heat }>; // of grids at several places of one more axis
  PathsPanel?: Shows<Paths>;
  attention?: {
    attend: (shared: PageState) => Attention;
    maskReader: (page: Page, source: Source) => PageState["maskOf"];
    groupsOf: (page: Page) => Group[];
    textsOf: (shared: PageState) => Findable; // words are found in its texts
  }; // where it can compute weights
}

const FEW = 3; // grids that are shown one after the other

/** The panel whose numbers are the picture that a grid is laid over. */
export function pictureUnder({ panels }: Page, { under }: Heat): Heat | undefined {
  return under ? (panels.find(({ name }) => name === under) as Heat) : undefined;
}

/** The numbers of the panels that a panel is shown beside: those of one tab, one after the other, or grids with the same rows and
 *  columns; else it alone. */
export function heatsOf({ panels }: Page, number: number): number[] {
  const key = (n: number) => {
    const panel = panels[n];
    if (panel?.tab) return panel.tab;
    return panel?.kind === "heat" && !panel.behind && !panel.sums ? JSON.stringify([panel.rows, panel.columns]) : null;
  };
  const own = key(number);
  if (own === null) return [number];
  let [first, end] = [number, number + 1];
  while (key(first - 1) === own) first--;
  while (key(end) === own) end++;
  return !panels[number]!.tab && end - first < FEW ? [number] : Array.from({ length: end - first }, (_, n) => first + n);
}

/** Whether a panel is shown among the numbers of a text: so many tabs would hide the view that the page is about. */
export function inNumbers(page: Page, { kind }: PanelData): boolean {
  return kind === "paths" || page.overview?.kind === "writing" || page.opening.view === "map";
}

/** The views that a page has: those that it carries something for, and one for each of its panels, or for several that are shown together. Numbers show the
 *  paths of a word too, and all panels of what a model wrote or of a map. A page that opens at a panel has the panels first. */
export function viewsOf(page: Page, { views, stages, HeatPanels }: Bundle): View[] {
  const stage = page.overview && stages?.[page.overview.kind];
  const first: View[] = stage ? [{ id: "overview", name: "Overview", component: stage, has: () => true, own: true }] : [];
  const own = views.filter((view) => view.has(page));
  const numbers = own.find(({ id }) => id === "tokens");
  const within = page.panels.flatMap((panel, n) => (inNumbers(page, panel) ? [`panel ${n}`] : []));
  const texts = [...first, ...own.map((view) => (view === numbers ? { ...view, shows: ["tokens", ...within] } : view))];
  const panels = page.panels.flatMap((panel, n): View[] => {
    if (numbers && inNumbers(page, panel)) return [];
    const beside = heatsOf(page, n);
    if (HeatPanels && beside[0] !== n) return [];
    const several = HeatPanels !== undefined && beside.length > 1;
    return [{ id: `panel ${n}`, name: several ? panel.tab || "Heat maps" : panel.name, component: several ? HeatPanels! : Panel, shows: several ? beside.map((each) => `panel ${each}`) : undefined, has: () => true, own: true }];
  });
  return page.opening.view.startsWith("panel ") ? [...panels, ...texts] : [...texts, ...panels];
}

/** The view that shows what an id names. */
export function viewOf(views: View[], id: string): View | undefined {
  return views.find((view) => view.id === id || view.shows?.includes(id));
}

/** The id of a view's tab in the document: "panel 2" may not stand there with its blank. */
export function tabOf(shared: PageState, view: string): string {
  return `${shared.id}-tab-${view.replace(" ", "-")}`;
}
