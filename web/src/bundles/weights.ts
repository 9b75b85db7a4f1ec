// The views of weights, and numbers beside them.
import { open } from "../page";
import Film from "../parts/Film.svelte";
import Texts from "../views/overview/Texts.svelte";
import { NUMBERS } from "../views/numbers";
import Tokens from "../views/Tokens.svelte";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, stages: { texts: Texts, image: Tokens }, ...NUMBERS, Film });
