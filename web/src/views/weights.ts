// The views of attention weights, which every page of a text has.
import { Attention } from "../attention/client";
import { maskReader } from "../attention/mask";
import type { Page } from "../data/format";
import { textsOf } from "../find_texts";
import { back } from "../written";
import Compare from "./Compare.svelte";
import { groupsOf } from "../groups";
import Heads from "./Heads.svelte";
import Lines from "./Lines.svelte";
import Map from "./Map.svelte";
import Steps from "./Steps.svelte";
import Tokens from "./Tokens.svelte";
import type { Bundle } from "./index";

/** Whether weights are computed here, from numbers that the page carries. */
function computed(page: Page): boolean {
  return page.calls.length > 0 && !page.calls.some((call) => call.served);
}

function several(page: Page): boolean {
  return computed(page) && (page.calls.some((call) => call.heads > 1) || page.calls.length > 1);
}

export const WEIGHTS = {
  attention: { attend: (shared) => new Attention(shared.page, shared.source, (call) => back(shared, call)), maskReader, groupsOf, textsOf },
  views: [
    { id: "tokens", name: "Tokens", component: Tokens, has: computed },
    { id: "lines", name: "Lines", component: Lines, has: computed },
    { id: "heads", name: "Heads", component: Heads, has: several },
    { id: "map", name: "Map", component: Map, has: (page) => page.calls.length > 0 },
    { id: "compare", name: "Compare", component: Compare, has: several, own: true },
    { id: "steps", name: "Steps", component: Steps, has: computed },
  ],
} satisfies Bundle;
