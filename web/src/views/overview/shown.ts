// What the first view shows, as plain functions: weights of a token in the chosen heads, the shape of an arc, the marks in a sentence.

import { below, choice, type Choice } from "../../choice";
import type { Values } from "../../data/bytes";
import type { OfTexts, Paths } from "../../data/format";
import type { PageState } from "../../page_state.svelte";

export const ROW = "overview row"; // of two sentences, the one that is acted on: the name of the choice

/** Which head is looked at; head null: all of the layer. */
export interface Pick {
  layer: number; // of those that the page has, from 0
  head: number | null;
}

/** The weights of a token in the chosen head, or in every head of a layer, (H, n). matrix: of the layer, (H, n, n). gives: what it looks at, else what looks at it. */
export function weightsOf(matrix: Float32Array, heads: number, token: number, gives: boolean, head: number | null): Float32Array {
  const n = Math.sqrt(matrix.length / heads);
  const out = new Float32Array(heads * n);
  for (let h = 0; h < heads; h++) {
    if (head !== null && head !== h) continue;
    for (let k = 0; k < n; k++) out[h * n + k] = matrix[(h * n + (gives ? token : k)) * n + (gives ? k : token)]!;
  }
  return out;
}

/** The sum over heads of (H, n) numbers. */
export function sumsOf(values: Float32Array, n: number): number[] {
  const out = new Array<number>(n).fill(0);
  values.forEach((value, at) => (out[at % n]! += value));
  return out;
}

/** The largest weight of a token in one head, of tokens that do not stand apart, itself aside: to which, and how large. */
export function strongest(matrix: Float32Array, token: number, gives: boolean, head: number, apart: boolean[]): [other: number, weight: number] {
  const n = apart.length;
  let [best, most] = [-1, -1];
  for (let k = 0; k < n; k++) {
    const weight = matrix[(head * n + (gives ? token : k)) * n + (gives ? k : token)]!;
    if (k !== token && !apart[k] && weight > most) [best, most] = [k, weight];
  }
  return [best, Math.max(0, most)];
}

export const DISTINCT = 250; // thousandths of a nat from which on the library calls a link distinctive

/** Each head's most distinctive link of a token, [layer][head]: the token at its other end, −1 where none is above the usual, and by how much, in thousandths of a nat. values: as OfTexts.unusual, of `size` tokens. */
export function mostUnusual(values: Values, layers: number, heads: number, size: number, token: number, gives = true): [other: number, much: number][][] {
  const at = (what: number, layer: number, head: number) => values[((((gives ? 0 : 2) + what) * layers + layer) * heads + head) * size + token]!;
  return Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, h) => (at(0, l, h) ? [at(1, l, h), at(0, l, h)] : [-1, 0])));
}

const f = (value: number) => value.toFixed(1);

/** An arc from a point, where it is thin, to another, where it is as wide as its weight. up: −1 above the line, 1 below it. */
export function ribbon(x0: number, y0: number, x1: number, y1: number, width: number, up: number, lift: number): string {
  const [half, thin] = [width * 0.5 * (x1 < x0 ? 1 : -1), 0.6];
  const [outer, inner] = [up * (lift + width * 0.42), up * Math.max(6, lift - width * 0.42)];
  return `M${f(x0 - thin)},${f(y0)}C${f(x0 - thin)},${f(y0 + outer)} ${f(x1 - half)},${f(y1 + outer)} ${f(x1 - half)},${f(y1)}L${f(x1 + half)},${f(y1)}C${f(x1 + half)},${f(y1 + inner)} ${f(x0 + thin)},${f(y0 + inner)} ${f(x0 + thin)},${f(y0)}Z`;
}

/** A line through points, its corners round. */
export function wire(points: [x: number, y: number][]): string {
  const towards = ([x, y]: number[], [a, b]: number[]) => {
    const part = Math.min(0.5, 7 / (Math.hypot(a! - x!, b! - y!) || 1));
    return `${f(x! + (a! - x!) * part)},${f(y! + (b! - y!) * part)}`;
  };
  return points.map((at, n) => (!n ? "M" : points[n + 1] ? `L${towards(at, points[n - 1]!)}Q` : "L") + at.map(f).join() + (n && points[n + 1] ? ` ${towards(at, points[n + 1]!)}` : "")).join("");
}

export interface Marked {
  text: string;
  kind: "plain" | "aside" | "word"; // word: quoted, in the colour of its text
  of: number; // that the word is of; -1: of none
}

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/** The parts of a sentence: what is in brackets, and the quoted words, each in the colour of the text or window that its clause names. texts: the names of all;
 *  several: whether a single text has several occurrences, of which the clause names the first, the second, and so on. followed: the word that is followed, or the first that is quoted, which has no colour; known: the words that the picture shows, in small letters. */
export function marked(sentence: string, texts: string[], followed: string | null, known: Set<string>, several = false): Marked[] {
  const own = followed ?? /“([^”]*)”/.exec(sentence)?.[1];
  const both = several && /\bthe (\w+) and the \w+ “/i.exec(sentence); // occurrences, whose words have the colour of the first
  const starts = texts.flatMap((name, n) => (/\bwindow 1 of /.test(name) ? n : [])); // the first window of each text
  return (sentence.match(/(?:\([^)]*\)|(?! and |(?<=\)), “)[^(])+(?: and |(?<=\)), (?=“))?| and |, (?=“)/g) ?? []).flatMap((clause) => {
    const [text, window] = ["text", "window"].map((what) => Number(RegExp(`\\b${what} (\\d+)`, "i").exec(clause)?.[1] ?? 0));
    const nth = ORDINALS.indexOf(/\bthe (\w+)\b(?= “| occurrence| (?:to|towards|away)\b|[,.;)]|$)/i.exec(clause)?.[1]?.toLowerCase() ?? "");
    const of = both ? ORDINALS.indexOf(both[1]!.toLowerCase()) : texts.length === 1 ? (several ? nth : 0) : window ? starts[Math.max(0, text! - 1)]! + window - 1 : text! - 1;
    return clause.split(/(\([^)]*\)|“[^”]*”)/).filter(Boolean).map((text): Marked => {
      const quoted = text !== `“${own}”` && text.startsWith("“") && known.has(text.slice(1, -1).toLowerCase());
      return { text, kind: quoted && of >= 0 ? "word" : text.startsWith("(") ? "aside" : "plain", of: quoted ? of : -1 };
    });
  });
}

/** The number between two states of a curve; null where one of them is not known. */
export function between(values: (number | null)[], at: number): number | null {
  const low = Math.min(Math.floor(at), values.length - 1);
  const [a, b] = [values[low] ?? null, values[Math.min(low + 1, values.length - 1)] ?? null];
  return a === null || at === low ? a : b === null ? null : a + (b - a) * (at - low);
}

/** The two occurrences of a followed word that are drawn: the furthest at first. */
export function pairOf(shared: PageState): Choice<number[]> {
  const { overview, panels } = shared.page;
  const fits = below((overview as OfTexts).tokens.length);
  const first = furthest(panels.find((panel) => panel.kind === "paths") as Paths | undefined);
  return choice(shared, "overview pair", first, (value) => Array.isArray(value) && value.length === 2 && value.every(fits) && value[0] < value[1]);
}

/** The occurrences that are drawn: three, if that is all and each has a text and no reference words, else two. */
export function drawnOf(shared: PageState): number[] {
  const [{ rows }, paths, pair] = [shared.page.overview as OfTexts, shared.page.panels.find((panel) => panel.kind === "paths") as Paths | undefined, pairOf(shared).value];
  return rows.length === 3 && new Set(rows).size === 3 && paths?.between && !paths.compared ? [0, 1, 2] : pair;
}

/** The two texts in which a word ends furthest apart: in its cosine to a reference word, else from each other. */
export function furthest(paths: Paths | undefined): [number, number] {
  const end = (values: (number | null)[]) => values.at(-1) ?? 0;
  const pairs = (paths?.between ?? []).flatMap((own, a) => own.map((values, b) => ({ far: -end(values), texts: [b, a] })));
  const rows = paths?.compared ? paths.curves.map((curve) => curve.paths.map(end)) : [];
  const spread = rows.map((row) => ({ far: Math.max(...row) - Math.min(...row), texts: [row.indexOf(Math.min(...row)), row.indexOf(Math.max(...row))] }));
  const [most] = (spread.length ? spread : pairs).sort((a, b) => b.far - a.far);
  return most && most.texts[0] !== most.texts[1] ? [Math.min(...most.texts), Math.max(...most.texts)] : [0, 1];
}

/** Take numbers from where they are to where they should be, in so many milliseconds: cubic in and out. Returns how to end that at once. */
export function moved(from: Float32Array, to: Float32Array, ms: number, put: (values: Float32Array) => void): () => void {
  if (!ms || from.length !== to.length) {
    put(to);
    return () => undefined;
  }
  const begun = performance.now();
  let frame = requestAnimationFrame(function step(now) {
    const part = Math.min(1, Math.max(0, (now - begun) / ms));
    const eased = part < 0.5 ? 4 * part ** 3 : 1 - (2 - 2 * part) ** 3 / 2;
    put(part === 1 ? to : from.map((value, n) => value + (to[n]! - value) * eased));
    if (part < 1) frame = requestAnimationFrame(step);
  });
  return () => cancelAnimationFrame(frame);
}
