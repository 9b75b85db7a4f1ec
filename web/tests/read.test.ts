// What a view asks for is put where it belongs, or its failure is told, unless something else is wanted by then.
import { expect, test, vi } from "vitest";
import { read } from "../src/read";

const soon = () => new Promise((then) => setTimeout(then));

test("the answer is put, and what failed before is no longer told", async () => {
  const [put, tell] = [vi.fn(), vi.fn()];
  read(async () => 7, put, tell);
  await soon();
  expect(put.mock.calls).toEqual([[7]]);
  expect(tell.mock.calls).toEqual([[""]]);
});

test.each([
  [new Error("there is no head 12"), "there is no head 12"],
  ["gone", "gone"],
])("a failure is told in its own words: %s", async (error, says) => {
  const [put, tell] = [vi.fn(), vi.fn()];
  read(() => Promise.reject(error), put, tell);
  await soon();
  expect(put).not.toHaveBeenCalled();
  expect(tell.mock.calls).toEqual([[says]]);
});

test.each([true, false])("what is not wanted any more is neither put nor told, and it is asked to stop: well %s", async (well) => {
  const [put, tell] = [vi.fn(), vi.fn()];
  let asked: AbortSignal | undefined;
  const leave = read(
    (signal) => {
      asked = signal;
      return well ? Promise.resolve(7) : Promise.reject(new Error("no"));
    },
    put,
    tell,
  );
  leave();
  await soon();
  expect(asked!.aborted).toBe(true);
  expect(put).not.toHaveBeenCalled();
  expect(tell).not.toHaveBeenCalled();
});
