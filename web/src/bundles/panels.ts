// Tables, bars, heat maps, scatters, curves and strips alone.
import { open } from "../page";
import NumbersPanel from "../views/NumbersPanel.svelte";

open({ views: [], NumbersPanel });
