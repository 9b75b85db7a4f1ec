// What a page takes that no smaller bundle can show, and what the widget and the page of a server have.
import Film from "../parts/Film.svelte";
import Alignment from "../views/Alignment.svelte";
import { NUMBERS } from "../views/numbers";
import Texts from "../views/overview/Texts.svelte";
import Writing from "../views/overview/Writing.svelte";
import Tokens from "../views/Tokens.svelte";
import PathsPanel from "../views/PathsPanel.svelte";
import type { Bundle } from "../views";
import { WEIGHTS } from "../views/weights";

export const EVERYTHING: Bundle = {
  ...WEIGHTS,
  stages: { texts: Texts, image: Tokens, pair: Alignment, writing: Writing },
  ...NUMBERS,
  Film,
  PathsPanel,
};
