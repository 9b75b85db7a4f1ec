import { expect, test } from "vitest";
import cases from "../../tests/display/numbers.json"; // [value, digits, text, unbounded]: Python's tests read them too
import { fixed, withSign, told } from "../src/parts/numbers";
import { formatted, numbersIn } from "../src/parts/sorting";

test("a fraction reads as 0 or 1 only where it is", () => {
  expect(cases.map(([value, digits, , unbounded]) => fixed(Number(value), Number(digits), !!unbounded))).toEqual(cases.map(([, , text]) => text));
});

test("a number with a sign has the digits that tell it from 0", () => {
  expect([0.5, -0.004, 0.004, 0, 0.0312].map((value) => withSign(value, 2))).toEqual(["+0.50", "−0.0040", "+0.0040", "0.00", "+0.031"]);
});

test("a picture's cell is empty where a number is nearly 0, and says 0 where it is 0", () => {
  expect(numbersIn([[0.25, 0.004, 0, 0.9987, null]], 5, 2)).toEqual([["0.25", "", "0.00", ">0.99", ""]]);
});

test("a sentence has as many digits as tell a number from 0 and 1", () => {
  expect([0.9987, 0.0042, 0.3125, 0.96, 0.99996, 1].map(told)).toEqual(["0.9987", "0.0042", "0.31", "0.96", "0.999960", "1.00"]);
});

test("a token of blanks has a name in a table, and a score is no fraction", () => {
  const [name, score] = [{ name: "token" }, { name: "score", digits: 2, unbounded: true }];
  expect(["\n", " ", ".\n\n", "", "bank"].map((cell) => formatted(cell, name))).toEqual(["⏎", "␣", ".⏎⏎", "", "bank"]);
  expect([0.997, -0.004, 10.93].map((cell) => formatted(cell, score))).toEqual(["1.00", "0.00", "10.93"]);
});
