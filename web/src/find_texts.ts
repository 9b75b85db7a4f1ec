// Finding a word in the texts of a page.
import type { Text } from "./data/format";
import { holding, type Findable } from "./find.svelte";
import type { PageState } from "./page_state.svelte";

/** The tokens at which what is sought begins in a text, be it a word, several or a piece of one; of a special token, its name. */
export function tokensWith({ text, tokens }: Text, sought: string): number[] {
  const [all, wanted] = [text, sought].map((each) => Array.from(each, (letter) => letter.toLowerCase()));
  const begins = new Set([...all!.keys()].filter((n) => wanted!.every((letter, m) => letter === all![n + m])));
  const named = new Set(holding(tokens.text, sought));
  return [...tokens.text.keys()].filter((n) => {
    const [start, end] = [tokens.start[n]!, tokens.end[n]!];
    if (start === end) return named.has(n); // of no characters
    for (let at = start; at < end; at++) if (begins.delete(at)) return true;
    return false;
  });
}

/** The texts of a page, the chosen one first: a word is found in all of them, and its text and token chosen. */
export function textsOf(shared: PageState): Findable {
  let found: { group: number; token: number }[] = [];
  return {
    find(sought) {
      const { groups, page, side } = shared;
      const seen = new Set<Text>();
      found = [...groups.keys()].flatMap((group) => {
        const call = page.calls[shared.sameCall(group)]!;
        const text = page.texts[side === "gives" ? call.queries : call.keys]!;
        if (seen.has(text)) return [];
        seen.add(text);
        return tokensWith(text, sought).map((token) => ({ group, token }));
      });
      return [...found.keys()];
    },
    first: () => Math.max(0, found.findIndex(({ group }) => group === shared.group)),
    go(place) {
      const { group, token } = found[place]!;
      if (group !== shared.group) shared.chooseGroup(group);
      shared.token = token;
      shared.found += 1;
    },
  };
}
