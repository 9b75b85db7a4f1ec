// The selection that all views share: what is kept of it when another call, text or side is chosen.
import { groupsOf } from "../src/groups";
import type { Bundle } from "../src/views";
import { beforeEach, expect, test } from "vitest";
import type { Call, Page, Text } from "../src/data/format";
import { PageState } from "../src/page_state.svelte";

const source = { bytes: () => new Uint8Array() };
const bundle = { views: [], attention: { groupsOf, attend: () => undefined, maskReader: () => undefined } } as unknown as Bundle;

function text(name: string): Text {
  const tokens = { text: ["a", "b"], start: [0, 1], end: [1, 2], special: [], sinks: [], word: [0, 1] };
  return { name, text: name === "text 1" ? "ab" : "a text of many characters that is shortened, as it is a long one", direction: "ltr", tokens };
}

function call(layer: number, queries: number, keys: number, heads = 4): Partial<Call> {
  return { name: `layer ${layer}`, layer, nth: 0, part: queries === keys ? "self" : "cross", queries, keys, heads, head_numbers: null };
}

function pageOf(calls: Partial<Call>[], opening: Partial<Page["opening"]> = {}): Page {
  return { texts: [text("text 1"), text("text 2")], calls, panels: [], opening: { view: "tokens", call: 0, head: null, token: null, ...opening } } as unknown as Page;
}

let shared: PageState;
beforeEach(() => {
  shared = new PageState(pageOf([call(0, 0, 0), call(1, 0, 0, 2), call(0, 1, 1), call(1, 1, 1), call(0, 1, 0)], { head: 3, token: 1 }), source, bundle);
});

test("it opens where the page says", () => {
  expect([shared.view, shared.call, shared.head, shared.token, shared.side]).toEqual(["tokens", 0, 3, 1, "gives"]);
  expect(shared.headName).toBe("head 3");
});

test("calls of one kind over one pair of texts are a group", () => {
  expect(shared.groups.map((group) => [group.name, group.calls])).toEqual([["text 1", [0, 1]], ["text 2", [2, 3]], ["text 2 → text 1", [4]]]);
  expect(shared.groups.map((group) => group.label)).toEqual(["text 1: ab", "text 2: a text o … s it is a long one", "text 2 → text 1"]);
});

test("another layer keeps the token, and the head where it has it", () => {
  shared.choose(1);
  expect([shared.call, shared.head, shared.token]).toEqual([1, null, 1]);
});

test("another text keeps the layer, and the same word is chosen, else its last", () => {
  shared.choose(1);
  shared.chooseGroup(1);
  expect([shared.call, shared.token, shared.group]).toEqual([3, 1, 1]);
  shared.page.texts[0]!.tokens.text = ["x", "a"];
  shared.token = 0; // "a", of which the other text has the nth alone
  shared.chooseGroup(0);
  expect(shared.token).toBe(1);
  shared.token = 0; // "x", which the other text lacks
  shared.chooseGroup(1);
  expect(shared.token).toBe(1);
  shared.token = null; // nothing stays nothing
  shared.chooseGroup(0);
  expect(shared.token).toBe(null);
});

test("the other side keeps the token of one text, not of two", () => {
  shared.turn("receives");
  expect([shared.token, shared.own.name]).toEqual([1, "text 1"]);
  shared.choose(4);
  shared.token = 0;
  expect([shared.own.name, shared.other.name]).toEqual(["text 1", "text 2"]);
  shared.turn("gives");
  expect([shared.token, shared.own.name]).toEqual([null, "text 2"]);
});

test("heads that were chosen from a model's have its numbers", () => {
  const few = new PageState(pageOf([{ ...call(0, 0, 0, 2), head_numbers: [5, 9] }]), source, bundle);
  expect(few.headName).toBe("mean of heads 5, 9");
  few.head = 1;
  expect([few.headName, few.numberOf(0)]).toEqual(["head 9", 5]);
});
