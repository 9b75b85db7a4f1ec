// Tokens taken together to words: the attention a word gives is the mean over its tokens, what it gets the sum over them.
import type { Call, Text } from "./data/format";

/** The runs of tokens [start, end) that are one word each; a token of no word is one by itself. */
export function wordsOf(text: Text): [number, number][] {
  const { word } = text.tokens;
  const runs: [number, number][] = [];
  word.forEach((each, n) => {
    if (n > 0 && each !== null && each === word[n - 1]) runs.at(-1)![1] = n + 1;
    else runs.push([n, n + 1]);
  });
  return runs;
}

/** Every token as a unit of its own. */
export function tokensOf(text: Text): [number, number][] {
  return text.tokens.text.map((_, n) => [n, n + 1]);
}

/** What units are called: the text they cover, or what their tokens read as. */
export function nameOf(text: Text, [start, end]: [number, number]): string {
  return text.tokens.text.slice(start, end).join("");
}

/** The number that a head has in the model, where the page may have some of the heads alone. */
export function headNumber(call: Call, head: number): number {
  return call.head_numbers?.[head] ?? head;
}

/** Keep what a sentence quotes from turning the words around it: right-to-left text stays inside its quotation marks. */
export function isolated(sentence: string): string {
  return sentence.replace(/“([^“”]*)”/g, "“\u2068$1\u2069”");
}

/** A token's text as it stands in a sentence: blanks at its ends left out, those that are all of it made visible. */
export function readable(name: string): string {
  return name.replaceAll("\n", "⏎").replaceAll("\t", "⇥").trim() || "␣";
}
