// The views of a page, in the order of their tabs. Each is a component that takes the shared alone.
import type { Component } from "svelte";
import type { Page } from "../data/format";
import type { PageState } from "../page_state.svelte";
import Tokens from "./Tokens.svelte";

export interface View {
  id: string; // as Opening.view names it
  name: string;
  component: Component<{ shared: PageState }>;
  has(page: Page): boolean; // whether the page carries what it shows
}

export const VIEWS: View[] = [
  { id: "tokens", name: "Tokens", component: Tokens, has: (page) => page.calls.length > 0 },
];
