// The attention calls of a page by their texts: what the choice of a text chooses between.
import type { Page, Text } from "./data/format";

/** The calls of one kind over one pair of texts: what the first choice, "text", chooses between. */
export interface Group {
  name: string;
  label: string; // its name, and how its text begins and ends: what one chooses by
  calls: number[]; // of the page's calls, by layer
}

const [BEGINNING, END] = [8, 18]; // characters of a text that tell it from others

function groupOf(queries: Text, keys: Text): Group {
  const characters = Array.from(queries.text.replaceAll(/\s+/g, " ").trim());
  const short = characters.length <= BEGINNING + END + 3;
  const shown = short ? characters.join("") : `${characters.slice(0, BEGINNING).join("").trim()} … ${characters.slice(-END).join("").trim()}`;
  const name = queries === keys ? queries.name : `${queries.name} → ${keys.name}`;
  const label = name.replace(/^target(.*) → .*/, "translation$1");
  return { name, label: shown && !label.includes("→") ? `${label}: ${shown}` : label, calls: [] };
}

/** The groups of a page's calls, in the order of their first ones. */
export function groupsOf(page: Page): Group[] {
  const groups = new Map<string, Group>();
  page.calls.forEach((call, number) => {
    const key = `${call.part} ${call.queries} ${call.keys}`;
    if (!groups.has(key)) groups.set(key, groupOf(page.texts[call.queries]!, page.texts[call.keys]!));
    groups.get(key)!.calls.push(number);
  });
  return [...groups.values()];
}
