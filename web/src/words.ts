// Tokens taken together to words: the attention a word gives is the mean over its tokens, what it gets the sum over them.
import type { Call, Text } from "./data/format";

export type Unit = [number, number]; // tokens [start, end)

/** The runs of tokens that are one word each; a token of no word is one by itself. */
export function wordsOf(text: Text): Unit[] {
  const { word } = text.tokens;
  const runs: Unit[] = [];
  word.forEach((each, n) => {
    if (n > 0 && each !== null && each === word[n - 1]) runs.at(-1)![1] = n + 1;
    else runs.push([n, n + 1]);
  });
  return runs;
}

/** Every token as a unit of its own. */
export function tokensOf(text: Text): Unit[] {
  return text.tokens.text.map((_, n) => [n, n + 1]);
}

/** The units that a view shows: whole words or tokens. */
export function unitsOf(text: Text, words: boolean): Unit[] {
  return words ? wordsOf(text) : tokensOf(text);
}

/** The number of the unit that a token is in; null without one. */
export function unitAt(units: Unit[], token: number | null): number | null {
  const found = token === null ? -1 : units.findIndex(([start, end]) => start <= token && token < end);
  return found < 0 ? null : found;
}

/** The weights of units of queries on units of keys, (queries, keys), from those of tokens: the mean over a unit's tokens
 *  as queries, the sum over them as keys. weight: of the tokens query and key, as the units number them. */
export function weightsOfUnits(weight: (query: number, key: number) => number, queries: Unit[], keys: Unit[]): Float32Array {
  const out = new Float32Array(queries.length * keys.length);
  let n = 0;
  for (const [top, bottom] of queries) {
    for (const [left, right] of keys) {
      let sum = 0;
      for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) sum += weight(i, j);
      out[n++] = sum / (bottom - top);
    }
  }
  return out;
}

const characters = new WeakMap<Text, string[]>();

/** What a unit is called: its token, or of several the text they cover, where they cover any; and its message in a chat. */
export function nameOf(text: Text, [start, end]: Unit): string {
  const { tokens } = text;
  const turn = tokens.turn?.[start] ? ` (${tokens.turn[start]})` : "";
  if (end - start === 1) return tokens.text[start]! + turn;
  if (!characters.has(text)) characters.set(text, Array.from(text.text));
  const own = characters.get(text)!.slice(tokens.start[start], tokens.end[end - 1]).join("");
  return (own.trim() || tokens.text.slice(start, end).join("")) + turn;
}

/** How each unit stands in its text: what is before it (blanks, line breaks, or characters that no token has), and its own characters. */
export function piecesOf(text: Text, units: Unit[]): { between: string; shown: string; blank: string; named: string }[] {
  const characters = Array.from(text.text);
  let at = 0;
  return units.map(([first, last]) => {
    const [start, end] = [text.tokens.start[first]!, text.tokens.end[last - 1]!];
    const between = start > at ? characters.slice(at, start).join("") : "";
    const own = characters.slice(Math.max(at, start), end).join("");
    const named = nameOf(text, [first, last]);
    at = Math.max(at, end);
    return { between, shown: own.trim() || readable(named), blank: own.length - own.trimStart().length > 0 ? " " : "", named };
  });
}

/** The number that a head has in the model, where the page may have some of the heads alone. */
export function headNumber(call: Call, head: number): number {
  return call.head_numbers?.[head] ?? head;
}

/** Keep what a sentence quotes from turning the words around it: right-to-left text stays inside its quotation marks. */
export function isolated(sentence: string): string {
  return sentence.replace(/“([^“”]*)”/g, "“\u2068$1\u2069”");
}

/** Keep a right-to-left name from turning what is beside it, such as its weight. */
export function isolatedName(name: string): string {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name;
}

/** A token's text as it stands in a sentence: blanks at its ends left out, those that are all of it made visible. */
export function readable(name: string): string {
  return name.replaceAll("\n", "⏎").replaceAll("\t", "⇥").trim() || "␣";
}

/** The same word of another text: of that name, the nth as it is the nth here; null where there is none. nth from 1. */
export function counterpart(names: string[], unit: number, others: string[]): { nth: number; of: number; unit: number | null } {
  const all = (list: string[]) => [...list.keys()].filter((n) => list[n]!.trim() === names[unit]!.trim());
  const [here, there] = [all(names), all(others)];
  const at = here.indexOf(unit);
  return { nth: at + 1, of: there.length, unit: there[at] ?? null };
}

/** The token of another text that is the same as a token of this one; null where there is none. */
export function sameWord(text: Text, token: number, other: Text): number | null {
  return text.tokens.text[token] === undefined ? null : counterpart(text.tokens.text, token, other.tokens.text).unit;
}

/** The token that is looked from where none was chosen: the last that has a letter or digit; special ones and sinks last. */
export function lastWord({ tokens }: Text): number | null {
  const apart = new Set([...tokens.special, ...tokens.sinks]);
  // a byte of an emoji is spelled "\x9f", which has no letter of the text
  const said = tokens.text.findLastIndex((name, n) => !apart.has(n) && /[\p{L}\p{N}]/u.test(name.replace(/\\x../g, "")));
  return said >= 0 ? said : tokens.text.length ? tokens.text.length - 1 : null;
}
