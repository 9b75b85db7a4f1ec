// What the server says of a training run, and how it is asked again and again while the page is looked at.
import type { Page, Panel } from "../data/format";
import type { Run } from "./address";

export interface RunState {
  name: string;
  model: string;
  sources: string[];
  going: "trains" | "silent" | "ended" | "stopped" | "broken off" | "not begun" | "unknown";
  says: string;
  step: number;
  steps: number;
  left: number | null; // seconds
  speed: number | null; // tokens a second
  rate: number | null;
  loss: number | null;
  validation: [number, number | null] | null; // step and loss
  findings: string[];
  curve: Panel & { kind: "curves" };
  samples: { step: number; text: string }[]; // the newest first
  more_samples: boolean;
  watched: { mark: string; count: number; step: number; layers: number; heads: number; parts: string[] } | null;
}

/** The page of the watched sentence. formed: the layer and head that attends by induction. */
export interface Watched {
  id: string;
  step: number;
  layer: number;
  head: number | null;
  formed: [number, number] | null;
  page: Page;
}

const [OFTEN, SELDOM] = [2_000, 8_000]; // ms between two looks at a run that trains, and at others

export const pause = (going: RunState["going"] | undefined) => (going === "trains" || going === "silent" ? OFTEN : SELDOM);

/** Where the page of the watched sentence is: of a head that is chosen, or of the one that the server chooses. */
export function watchedPath({ number, layer, head, part }: Run): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries({ layer, head, part })) if (value !== null) asked.set(name, String(value));
  return `/api/runs/${number}/watched?${asked}`;
}

/** Do something again and again, each time after the one before is done and some time has passed; not while the page is hidden. */
export function repeat(does: () => Promise<number>): () => void {
  let [over, timer] = [false, 0];
  const turn = async () => {
    clearTimeout(timer);
    const wait = document.hidden ? OFTEN : await does();
    if (!over) timer = setTimeout(turn, wait);
  };
  void turn();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}
