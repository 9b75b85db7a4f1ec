// A word is found in a text wherever it begins, be it one token, several, a piece of one, or a special token's name.
import { expect, test } from "vitest";
import type { Text } from "../src/data/format";
import { holding } from "../src/find.svelte";
import { tokensWith } from "../src/find_texts";

/** A text of some tokens: each is said as it stands in the text, special ones in brackets stand nowhere. */
function textOf(...tokens: string[]): Text {
  const [start, end]: [number[], number[]] = [[], []];
  let text = "";
  for (const token of tokens) {
    start.push(Array.from(text).length);
    if (!token.startsWith("[")) text += token;
    end.push(Array.from(text).length);
  }
  return { text, tokens: { text: tokens, start, end } } as unknown as Text;
}

const TEXT = textOf("[CLS]", "The", " 🙂", " Un", "believ", "able", " bank", ",", " the", " bank", "[SEP]");

test.each([
  ["bank", [6, 9]],
  ["the", [1, 8]],
  ["unbelievable", [3]],
  ["BELIEVABLE", [4]],
  ["e bank", [5, 8]],
  ["ank", [6, 9]],
  ["🙂", [2]],
  ["[sep]", [10]],
  ["river", []],
])("%s", (sought, tokens) => expect(tokensWith(TEXT, sought)).toEqual(tokens));

test("each token once, however often it holds what is sought", () => {
  expect(tokensWith(textOf("aaaa", "aa"), "a")).toEqual([0, 1]);
  expect(holding(["Bank", "embankment", "river"], "BANK")).toEqual([0, 1]);
});
