// What shows numbers of the library's own.
import HeatPanels from "./HeatPanels.svelte";
import NumbersPanel from "./NumbersPanel.svelte";

export const NUMBERS = { NumbersPanel, HeatPanels };
