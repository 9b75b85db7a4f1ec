// Two attention calls side by side: what is compared with what at first, and whether a difference can be taken.
import type { Call, Page, Text } from "../data/format";
import type { PageState } from "../page_state.svelte";
import { nameOf, wordsOf } from "../words";

/** Which way the differences are taken, beside their colours. */
export const WAY = "Red where B has more, blue where A has more.";
export const LEAST = 0.01; // the difference that the darkest colour stands for at least: smaller ones are pale
export const CELLS = 48; // of a map that is shown whole, each way

export interface Chosen {
  call: number; // of the page's calls
  head: number | null;
}

/** What the shown call is compared with at first: the same layer of the next text, else another head, one that the sentences
 *  name where they do, else another layer. A source and
 *  its target have other words: theirs are compared within each. */
export function otherOf(shared: PageState): Chosen {
  const { groups, group, description, page, call, head } = shared;
  if (groups.length > 1 && !page.calls.some(({ part }) => part === "cross")) {
    const { calls } = groups[(group + 1) % groups.length]!;
    const same = calls.find((each) => page.calls[each]!.layer === description.layer && page.calls[each]!.nth === description.nth) ?? calls[0]!;
    return { call: same, head: head !== null && head < page.calls[same]!.heads ? head : null };
  }
  const { calls } = groups[group]!;
  const told = Number(/\bhead (\d+)/.exec(page.findings.join())?.[1] ?? 0); // that the sentences name first
  const named = Array.from({ length: description.heads }, (_, n) => n).find((n) => n !== head && shared.numberOf(n) === told);
  if (description.heads > 1 && (head !== null || calls.length === 1)) return { call, head: named ?? ((head ?? -1) + 1) % description.heads };
  return { call: calls[(calls.indexOf(call) + 1) % calls.length]!, head: null };
}

/** Why no difference of two calls' weights can be taken: their tokens, or words, are not the same; null where they are. */
export function whyNot(page: Page, a: Call, b: Call, words: boolean): string | null {
  const found = differ(page.texts[a.queries]!, page.texts[b.queries]!, words) ?? differ(page.texts[a.keys]!, page.texts[b.keys]!, words);
  return found && `No difference is shown, because the token pairs are not the same: ${found}.`;
}

function differ(a: Text, b: Text, words: boolean): string | null {
  if (a === b) return null;
  const [own, other] = [a.tokens.text, b.tokens.text];
  if (own.length !== other.length) return `${a.name} has ${own.length} tokens, ${b.name} has ${other.length}`;
  const at = own.findIndex((name, n) => name !== other[n]);
  if (at >= 0) return `token ${at} is “${own[at]}” in ${a.name} and “${other[at]}” in ${b.name}`;
  if (!words || String(wordsOf(a)) === String(wordsOf(b))) return null;
  return `the tokens form different words in ${a.name} and in ${b.name}`;
}

/** Whether each word of some calls' texts can have a cell of its own in a map that is shown whole. */
export function wordsFit(page: Page, calls: readonly Call[]): boolean {
  return calls.every((call) => [call.queries, call.keys].every((text) => wordsOf(page.texts[text]!).length <= CELLS));
}

/** b − a, number by number. */
export function less(b: Float32Array, a: Float32Array): Float32Array {
  return b.map((value, n) => value - a[n]!);
}

/** The numbers of differences, the largest of either sign first. */
export function bySize(differences: Float32Array): number[] {
  return [...differences.keys()].sort((m, n) => Math.abs(differences[n]!) - Math.abs(differences[m]!) || m - n);
}

/** What the cells of a small map are called: their token or word, or the numbers of their tokens. */
export function cellNames(text: Text, cells: number, words = false): string[] {
  const names = words ? wordsOf(text).map((unit) => nameOf(text, unit)) : text.tokens.text;
  if (cells === names.length) return names.map((name, n) => `${n} ${name.replaceAll("\n", "⏎")}`);
  return Array.from({ length: cells }, (_, c) => {
    const [first, last] = [Math.floor((c * names.length) / cells), Math.floor(((c + 1) * names.length) / cells) - 1];
    return first === last ? `${first}` : `${first}–${last}`;
  });
}
