// The heads of some calls with their scores, sorted and filtered.
import { headNumber } from "../words";
import type { HeadScores, Page } from "../data/format";

export interface Head {
  id: string;
  call: number; // of the page's calls
  head: number; // of those that the page has
  number: number; // in the model
  row: number; // of the calls that are shown
  name: string;
  scores: (number | null)[]; // by the scores' names
}

/** Every head of some calls, in their order; without scores where the page has none. */
export function headsOf(page: Page, calls: number[], scores: HeadScores | null): Head[] {
  return calls.flatMap((call, row) => {
    const at = scores ? scores.calls.indexOf(call) : -1;
    const { name, heads } = page.calls[call]!;
    const number = (head: number) => headNumber(page.calls[call]!, head);
    return Array.from({ length: heads }, (_, head) => ({
      id: `${call}-${head}`,
      call,
      head,
      number: number(head),
      row,
      name: `${name}, head ${number(head)}`,
      scores: scores ? scores.values.map((rows) => (at < 0 ? null : (rows[at]![head] ?? null))) : [],
    }));
  });
}

/** The heads whose score is at least a number, the highest first where they are to be sorted. */
export function keptOf(heads: Head[], score: number, sorted: boolean, least: number): Head[] {
  const kept = least > 0 ? heads.filter((each) => (each.scores[score] ?? -1) >= least) : heads;
  return sorted ? [...kept].sort((a, b) => (b.scores[score] ?? -1) - (a.scores[score] ?? -1)) : kept;
}
