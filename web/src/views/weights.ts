// The views of attention weights, which every page of a text has.
import { Attention } from "../attention/client";
import { maskReader } from "../attention/mask";
import type { Page } from "../data/format";
import { textsOf } from "../find_texts";
import { back } from "../written";
import { groupsOf } from "../groups";
import Matrix from "./Matrix.svelte";
import Steps from "./Steps.svelte";
import Tokens from "./Tokens.svelte";
import type { Bundle } from "./index";

/** Whether weights are computed here, from numbers that the page carries. */
function computed(page: Page): boolean {
  return page.calls.length > 0 && !page.calls.some((call) => call.served);
}

/** Whether there is more than one matrix. */
export function several(page: Page): boolean {
  return computed(page) && (page.calls.some((call) => call.heads > 1) || page.calls.length > 1);
}

export const WEIGHTS = {
  attention: { attend: (shared) => new Attention(shared.page, shared.source, (call) => back(shared, call)), maskReader, groupsOf, textsOf },
  views: [
    { id: "map", name: "Matrix", component: Matrix, has: (page) => page.calls.length > 0, shows: ["map", "compare"] },
    { id: "tokens", name: "Numbers", component: Tokens, has: (page) => computed(page) && page.overview?.kind !== "image" },
    { id: "steps", name: "Steps", component: Steps, has: computed },
  ],
} satisfies Bundle;
