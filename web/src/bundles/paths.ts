// The views of weights, and the paths of a word through the layers.
import { open } from "../page";
import Texts from "../views/overview/Texts.svelte";
import PathsPanel from "../views/PathsPanel.svelte";
import { WEIGHTS } from "../views/weights";

open({ ...WEIGHTS, stages: { texts: Texts }, PathsPanel });
