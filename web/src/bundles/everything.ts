// What a page takes that no smaller bundle can show, and what the widget and the page of a server have.
import Film from "../parts/Film.svelte";
import Alignment from "../views/Alignment.svelte";
import Generation from "../views/Generation.svelte";
import { NUMBERS } from "../views/numbers";
import PathsPanel from "../views/PathsPanel.svelte";
import type { Bundle } from "../views";
import { WEIGHTS } from "../views/weights";

export const EVERYTHING: Bundle = {
  ...WEIGHTS,
  views: [
    ...WEIGHTS.views,
    { id: "alignment", name: "Alignment", component: Alignment, has: (page) => page.alignment.some((each) => each.calls.length > 0) },
    { id: "generation", name: "Generation", component: Generation, has: (page) => page.generation.some((each) => each.steps.length > 0) },
  ],
  ...NUMBERS,
  Film,
  PathsPanel,
};
