// The views of weights, and the paths of a word through the layers.
import { open } from "../page";
import { OVERVIEW } from "../views/overview/view";
import PathsPanel from "../views/PathsPanel.svelte";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, views: [OVERVIEW, ...WEIGHTS.views], PathsPanel });
