// The blocked loop over a region against the plain loop over rows. Against numpy both are held by tests/web/test_region.py.
import { expect, test } from "vitest";
import type { LoadedCall } from "../src/attention/loaded";
import { region } from "../src/attention/region";
import { column, row, rowOfHeads } from "../src/attention/weights";

const [HEADS, LENGTH, SIZE, WIDTH] = [4, 9, 11, 5];

/** A call whose weights sum to 1 in each row, of numbers that look random. low, high: the band of its mask. */
function made(low = -Infinity, high = Infinity): LoadedCall {
  const numbers = (count: number, from: number) => Float32Array.from({ length: count }, (_, n) => Math.sin(12.9898 * (n + from)) * 2);
  const call: LoadedCall = {
    heads: HEADS, share: 2, length: LENGTH, size: SIZE, width: WIDTH, scale: 1, softcap: null, bias: null, ablated: new Set(),
    query: numbers(HEADS * LENGTH * WIDTH, 1), key: numbers((HEADS / 2) * SIZE * WIDTH, 500),
    rowMax: new Float32Array(HEADS * LENGTH), rowSum: new Float32Array(HEADS * LENGTH).fill(1), mask: { kind: "band", low, high },
  }; // prettier-ignore
  for (let h = 0; h < HEADS; h++) for (let i = 0; i < LENGTH; i++) call.rowSum[h * LENGTH + i] = sum(row(call, h, i));
  return call;
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((a, b) => a + b, 0);
}

test.each([[-Infinity, Infinity], [-Infinity, 0], [-2, 3]])("cells from %f to %f are the means of their weights", (low, high) => {
  const call = made(low, high);
  const rows = Array.from({ length: LENGTH }, (_, i) => row(call, 1, i));
  for (const weights of rows) expect(sum(weights)).toBeCloseTo(1, 5);
  const whole = region(call, { head: 1, queries: [0, LENGTH], keys: [0, SIZE], rows: LENGTH, cols: SIZE });
  whole.forEach((weight, n) => expect(weight).toBeCloseTo(rows[Math.floor(n / SIZE)]![n % SIZE]!, 6));
  const [cell] = region(call, { head: 1, queries: [2, 5], keys: [1, 7], rows: 1, cols: 1 });
  expect(cell).toBeCloseTo(sum([2, 3, 4].map((i) => sum(rows[i]!.subarray(1, 7)))) / 18, 6);
});

test("rows, columns and means of heads agree", () => {
  const call = made(-Infinity, 0);
  const heads = rowOfHeads(call, 3);
  const mean = row(call, null, 3);
  mean.forEach((weight, j) => expect(weight).toBeCloseTo(sum([0, 1, 2, 3].map((h) => heads[h * SIZE + j]!)) / HEADS, 6));
  expect(column(call, null, 2)[3]).toBeCloseTo(mean[2]!, 6);
  call.ablated.add(0);
  expect(sum(row(call, 0, 3))).toBe(0);
});

test("what lies beyond the last query or key is 0", () => {
  const cells = region(made(), { head: null, queries: [8, 16], keys: [8, 16], rows: 4, cols: 4 });
  expect([...cells].map((cell, n) => cell > 0 === (n < 4 && n % 4 < 2))).not.toContain(false);
});
