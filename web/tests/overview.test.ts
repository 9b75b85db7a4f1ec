// The first view's plain functions: weights of a token, marks in a sentence, arcs, numbers on their way.
import { expect, test } from "vitest";
import type { Paths } from "../src/data/format";
import { between, furthest, marked, moved, ribbon, strongest, sumsOf, weightsOf } from "../src/views/overview/shown";

// two heads of two tokens: rows look at columns
const MATRIX = Float32Array.of(0.25, 0.75, 0.5, 0.5, 1, 0, 0.125, 0.875);

test("a token's weights are its row, or its column, of one head or of each", () => {
  expect([...weightsOf(MATRIX, 2, 0, true, null)]).toEqual([0.25, 0.75, 1, 0]);
  expect([...weightsOf(MATRIX, 2, 1, false, 0)]).toEqual([0.75, 0.5, 0, 0]);
  expect(sumsOf(weightsOf(MATRIX, 2, 0, true, null), 2)).toEqual([1.25, 0.75]);
});

test("a head's strongest link leaves out the token itself and what stands apart", () => {
  expect(strongest(MATRIX, 0, true, 0, [false, false])).toEqual([1, 0.75]);
  expect(strongest(MATRIX, 0, true, 0, [false, true])).toEqual([-1, 0]);
  expect(strongest(MATRIX, 0, false, 1, [false, false])).toEqual([1, 0.125]);
});

test("words of a sentence have the colour of the text that their clause names", () => {
  const known = new Set(["bank", "river", "loan", "grassy", "savings", "tired", "animal", "it"]);
  const found = (sentence: string, texts = ["text 1", "text 2"], followed: string | null = "bank") =>
    marked(sentence, texts, followed, known).filter(({ kind }) => kind !== "plain").map(({ text, of }) => [text, of]);
  expect(found("Text 1 moves “bank” towards “river” (cosine 0.52, neutral 0.29 to 0.39) and text 2 away from “loan”.")).toEqual([
    ["“river”", 0],
    ["(cosine 0.52, neutral 0.29 to 0.39)", -1],
    ["“loan”", 1],
  ]);
  expect(found("“bank” attends to “grassy” in text 1 (0.84) and to “savings” in text 2 (0.40).").map(([, of]) => of)).toEqual([0, -1, 1, -1]);
  expect(found("“bank” attends to “grassy” in text 1 (0.84), “savings” in text 2 (0.40) and “it” in text 3 (0.50).", ["text 1", "text 2", "text 3"]).map(([, of]) => of)).toEqual([0, -1, 1, -1, 2, -1]);
  expect(found("“it” attends to “tired” (0.71) and “animal” (0.68).", ["text 1"], null)).toEqual([["“tired”", 0], ["(0.71)", -1], ["“animal”", 0], ["(0.68)", -1]]);
  expect(found("After “it” the model predicts “elsewhere” (0.27).", ["text 1"], null)).toEqual([["(0.27)", -1]]);
  const windows = [1, 2, 3].map((n) => `window ${n} of 3, tokens ${n} to ${n + 9}`);
  expect(found("In window 3 of 3, “it” attends to “tired” (0.71).", windows, null)).toEqual([["“tired”", 2], ["(0.71)", -1]]);
  const several = windows.flatMap((name, n) => (n < 2 ? [`text 1, ${name}`, `text 2, ${name}`] : [])).sort();
  expect(found("In text 2, window 1 of 3, “it” attends to “tired”.", several, null)).toEqual([["“tired”", 2]]);
});

test("a sentence keeps all of its letters", () => {
  for (const sentence of ["Text 1 moves “a” (x and y) and text 2 “b”.", "“a” (1), “b” (2), c and “b”.", "and so on", "The “x” and “y” (1) and (2)", ""])
    expect(marked(sentence, ["text 1", "text 2"], null, new Set(["b"])).map(({ text }) => text).join("")).toBe(sentence);
});

test("an arc begins thin and ends as wide as its weight", () => {
  const [start, end] = [ribbon(10, 50, 100, 50, 20, -1, 40), ribbon(100, 50, 10, 50, 20, 1, 40)];
  expect(start).toMatch(/^M9\.4,50\.0C9\.4,1\.6 110\.0,1\.6 110\.0,50\.0L90\.0,50\.0/);
  expect(end).toMatch(/^M99\.4,50\.0C99\.4,98\.4 0\.0,98\.4 0\.0,50\.0L20\.0,50\.0/);
});

test("between two states a curve has what is between their numbers, none where one is not known", () => {
  expect([between([1, 3, null], 0.5), between([1, 3, null], 1), between([1, 3, null], 1.5), between([1, 3], 1), between([], 0)]).toEqual([2, 3, null, 3, null]);
});

test("without motion the numbers are there at once", () => {
  let now = Float32Array.of();
  moved(Float32Array.of(1), Float32Array.of(2), 0, (values) => (now = values as Float32Array<ArrayBuffer>));
  expect([...now]).toEqual([2]);
});

test("of several texts the two whose word ends furthest apart are shown", () => {
  const cosines = [[[0.5, 0.9]], [[0.5, 0.2], [0.5, 0.4]]]; // of 1 with 0, of 2 with 0 and 1
  expect(furthest({ compared: false, between: [[], ...cosines] } as unknown as Paths)).toEqual([0, 2]);
  const curves = [{ paths: [[0, 0.3], [0, 0.5], [0, 0.4]] }];
  expect(furthest({ compared: true, between: null, curves } as unknown as Paths)).toEqual([0, 1]);
  expect(furthest(undefined)).toEqual([0, 1]);
});
