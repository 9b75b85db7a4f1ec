// The views of weights, and numbers beside them.
import { open } from "../page";
import Film from "../parts/Film.svelte";
import { NUMBERS } from "../views/numbers";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, ...NUMBERS, Film });
