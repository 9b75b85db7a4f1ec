// What tells paths apart, wherever they are drawn: a colour, a mark and a kind of line for each; of many only the first have colours.
import type { Paths } from "../data/format";
import { groupColours } from "./colours";
import { fixed } from "./numbers";

const MARKS = ["M4.5 0A4.5 4.5 0 1 1 -4.5 0A4.5 4.5 0 1 1 4.5 0Z", "M-4 -4H4V4H-4Z", "M0 -5L5 4H-5Z", "M-5 -4H5L0 5Z", "M-1.8 -5H1.8V-1.8H5V1.8H1.8V5H-1.8V1.8H-5V-1.8H-1.8Z"];
const DASHES = ["", "7 3", "2 3"];
const MOST = 12; // paths that have colours and names; of more the others are grey

export interface PathStyle {
  told: number[]; // the numbers of the paths that have colours and names
  colour: (path: number) => string;
  mark: (path: number) => string;
  dash: (path: number) => string;
  said: (cosine: number | null | undefined) => string; // how it reads, where there is one
}

/** The style of each path. pointed: the one that was pointed at last stands out where it is grey; null: none. */
export function pathStyle(panel: Paths, dark: boolean, pointed: number | null): PathStyle {
  const colours = groupColours(dark);
  const told = [...panel.paths.keys()].slice(0, MOST);
  return {
    told,
    colour: (n) => (n < MOST ? colours[n % colours.length]! : n === pointed ? "var(--followed)" : "var(--quiet)"),
    mark: (n) => MARKS[n % MARKS.length]!,
    dash: (n) => DASHES[Math.floor(n / colours.length) % DASHES.length]!,
    said: (cosine) => (cosine == null ? "unknown" : fixed(cosine, panel.digits)),
  };
}
