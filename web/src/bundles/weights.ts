// The views of weights, and numbers beside them.
import { open } from "../page";
import Film from "../parts/Film.svelte";
import { OVERVIEW } from "../views/overview/view";
import { NUMBERS } from "../views/numbers";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, views: [OVERVIEW, ...WEIGHTS.views], ...NUMBERS, Film });
