// The first view of a page in a file: of one short text, or of two with a followed word.
import type { View } from "../index";
import Headline from "./Headline.svelte";
import Overview from "./Overview.svelte";

export const OVERVIEW: View = { id: "overview", name: "Overview", component: Overview, has: (page) => !!page.overview, own: true, Headline };
