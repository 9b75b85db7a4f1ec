// Finding a word in what is shown: parts with labels tell which of their places hold it, and go there.
import { getContext, setContext } from "svelte";

/** What words are found in: its places that hold what is sought, and the way to one of them. */
export interface Findable {
  find: (sought: string) => number[];
  go: (place: number) => void;
  first?: () => number; // of the places found: to begin at
}

const KEY = "findable";

/** The parts of the views that are on the page, for the field that seeks in them. */
export function findables(): Set<Findable> {
  return setContext(KEY, new Set<Findable>());
}

/** Let words be found in a part, by the names of its places. */
export function findable(names: () => string[], go: Findable["go"]): void {
  const all = getContext<Set<Findable> | undefined>(KEY); // none where a part stands outside of the views
  $effect(() => {
    const own = { find: (sought: string) => holding(names(), sought), go };
    all?.add(own);
    return () => void all?.delete(own);
  });
}

/** The numbers of the names that hold what is sought, in capitals or not. */
export function holding(names: string[], sought: string): number[] {
  return [...names.keys()].filter((n) => names[n]!.toLowerCase().includes(sought.toLowerCase()));
}
