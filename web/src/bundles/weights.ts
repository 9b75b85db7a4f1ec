// The views of weights, and numbers beside them.
import { open } from "../page";
import NumbersPanel from "../views/NumbersPanel.svelte";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, NumbersPanel });
