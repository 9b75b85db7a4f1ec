// The address bar: what is looked at stands behind its #, so that a link shows the same again.

import type { Sight } from "../cloud/camera";
import type { Call, Text } from "../data/format";
import type { MapLook } from "../page_state.svelte";
import { readable } from "../words";

export interface HeadCut {
  kind: "head";
  layer: number;
  head: number;
  part: string | null;
}
export interface EdgeCut {
  kind: "edge";
  query: string | number;
  key: string | number;
  layer: number | null;
  head: number | null;
  part: string | null;
}
export interface StatePatch {
  kind: "patch";
  what: "hidden_states";
  layer: number | "input";
  source: string; // another text
  at: string | number;
  source_at: string | number | null; // null: the same as at
}
export type Cut = HeadCut | EdgeCut | StatePatch;

/** An experiment, as the server takes it. */
export type Experiment =
  | { kind: "patch"; texts: string[]; asked: { word: string | null; to: string | null; against?: string | null; what: "hidden_states" | "head_outputs"; noising?: boolean } }
  | { kind: "attribute"; texts: string[]; asked: { to: string | null; against: string | null; word: string | null; like: string | null } }
  | { kind: "score"; texts: string[]; asked: { query: number; key: number; layer: number; head: number } };

/** What a corpus store is asked. */
export interface Corpus {
  store: number;
  about: "occurrences" | "senses" | "heads";
  word: string | null;
}

/** A word whose path through the layers is asked for, beside reference words. */
export interface Followed {
  word: string;
  references: string[];
}

/** Where a text was found: what the store was asked, where in its answer, and what the text is. */
export interface Found {
  corpus: Corpus;
  view: string;
  cloud: Looking["cloud"];
  document: string;
  first: number;
  same: boolean;
}

/** States that are pushed while a text is written, from one text towards another. layer: null is the middle one. */
export interface Steering {
  towards: string;
  away: string;
  strength: number;
  layer: number | null;
}

/** What was asked for. file: a page that the server was started with, instead of texts. */
export interface Asked {
  model: number;
  other?: number | null; // a model that the first is compared with
  texts: string[];
  ablations: Cut[];
  about?: number | null; // of the texts, the one that is changed, which is then shown alone, as is and changed; null: all are
  watched?: string | null; // a word that a change is seen at, where none is followed
  file: string | null;
  window: number | null; // of so many tokens, in which long texts are read
  corpus: Corpus | null; // what a store is asked, instead of texts
  experiment: Experiment | null; // done with the texts, in place of showing their attention alone
  followed?: Followed | null; // null: no word is followed
  from?: Found | null; // where the text was found, where it is one of a store's
  written: number | null; // how many tokens the model is to go on with, behind the first text; null: none
  steer?: Steering | null; // and how, beside what it writes unsteered
  picture?: File; // that is on its way; its page is then a file that the server keeps, for no address holds a picture
}

/** Where one looks. */
export interface Looking {
  view: string;
  call: number;
  head: number | null;
  token: number | null;
  side: "gives" | "receives";
  words?: boolean; // tokens of one word taken together
  choices?: Record<string, unknown>; // in single views
  map?: MapLook | null; // what is in sight of a matrix, null: the whole
  cloud?: (Sight & { point: number | null }) | null; // what is in sight of a cloud of points
}

export const NOTHING: Asked = { model: 0, texts: [], ablations: [], file: null, window: null, written: null, experiment: null, corpus: null, followed: null };
export const WHOLE: Looking = { view: "", call: 0, head: null, token: null, side: "gives" };

/** Where one looks, of what holds that and more. */
export function lookingOf({ view, call, head, token, side, words, choices, map, cloud }: Looking): Looking {
  return { view, call, head, token, side, words, choices, map, cloud };
}

/** What was asked for, of what holds that and more. */
export function askedOf({ model, other, texts, ablations, about, watched, file, window, written, steer, experiment, corpus, followed, from }: Asked): Asked {
  return { model, other, texts, ablations, about, watched, file, window, written, steer, experiment, corpus, followed, from };
}

/** The address that a pasted link leads to, with what is looked at now; null where it is no link of `regard serve`. */
export function linkWith(pasted: string): string | null {
  const found = /^http:\/\/(127\.0\.0\.1|localhost):\d{1,5}\/\?token=[\w-]+$/.exec(pasted.trim());
  return found && found[0] + location.hash;
}

const LONGEST = 30_000; // characters of an address; a longer text is not part of it
const HELD = "regard: what the address is too short for"; // this tab's own, which a reload has and no link

/** Write the address. "part": the texts are too long for one, so that this tab alone shows them again. "none": nor can it. */
export function write(asked: Asked, looking: Looking): "all" | "part" | "none" {
  const choices = Object.keys(looking.choices ?? {}).length ? looking.choices : undefined;
  const seen = { ...looking, words: looking.words || undefined, choices, map: looking.map ?? undefined, cloud: looking.cloud ?? undefined };
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null));
  const whole = encodeURIComponent(JSON.stringify({ ...given, ...seen }));
  const fits = whole.length <= LONGEST;
  const number = fits ? null : hold(asked);
  const written = fits ? `/#${whole}` : number === null ? "/" : `/#${encodeURIComponent(JSON.stringify({ held: number, ...seen }))}`;
  history.replaceState(history.state, "", written);
  return fits ? "all" : number === null ? "none" : "part";
}

let last: { asked: Asked; number: number } | null = null; // what is held, so that it is written once

/** Keep what was asked for in this tab, the last alone; gives its number, null where the tab has no room for it. */
function hold(asked: Asked): number | null {
  if (last?.asked === asked) return last.number;
  try {
    const number = (held()?.number ?? 0) + 1;
    sessionStorage.setItem(HELD, JSON.stringify({ number, asked }));
    last = { asked, number };
    return number;
  } catch {
    return null; // no room, or not allowed
  }
}

function held(): { asked: Partial<Asked>; number: number } | null {
  return JSON.parse(sessionStorage.getItem(HELD) ?? "null") as { asked: Asked; number: number } | null;
}

/** An address whose text it could not hold, and which this tab does not have either. */
export class TextNotHeld extends Error {
  constructor() {
    super("The text of this view is too long for an address, and this tab no longer has it: load the text again.");
  }
}

/** Read the address; null where it tells nothing, or nothing that can be read. Throws TextNotHeld. */
export function read(): (Asked & Looking) | null {
  try {
    let found = JSON.parse(decodeURIComponent(location.hash.slice(1))) as Partial<Asked & Looking> & { held?: number };
    if (found.held !== undefined) {
      const kept = held();
      if (kept?.number !== found.held) throw new TextNotHeld();
      found = { ...found, ...kept.asked };
    }
    const texts = Array.isArray(found.texts) && found.texts.every((each) => typeof each === "string") ? found.texts : null;
    if (!texts) return null;
    const number = (value: unknown) => (typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : null);
    return {
      model: number(found.model) ?? 0,
      other: number(found.other),
      texts,
      ablations: Array.isArray(found.ablations) ? found.ablations : [], // the server checks them
      about: number(found.about),
      watched: typeof found.watched === "string" ? found.watched : null,
      file: typeof found.file === "string" ? found.file : null,
      window: number(found.window),
      written: number(found.written),
      steer: found.steer ?? null, // the server checks it
      experiment: found.experiment ? asToday(found.experiment) : null, // the server checks it, and what a store is asked
      corpus: found.corpus ?? null,
      followed: typeof found.followed?.word === "string" && Array.isArray(found.followed.references) ? found.followed : null,
      from: found.from ?? null,
      words: found.words === true,
      choices: typeof found.choices === "object" ? { ...found.choices } : {}, // each view looks whether its own mean anything
      map: found.map ?? null,
      cloud: found.cloud ?? null,
      view: typeof found.view === "string" ? found.view : "tokens",
      call: number(found.call) ?? 0,
      head: number(found.head),
      token: number(found.token),
      side: found.side === "receives" ? "receives" : "gives",
    };
  } catch (error) {
    if (error instanceof TextNotHeld) throw error;
    return null;
  }
}

/** Experiments as older addresses have them. */
type Before =
  | { kind: "patches"; clean: string; corrupted: string; word: string | null; token: string | null; against?: string | null; what?: "hidden_states" | "head_outputs"; direction?: string }
  | { kind: "score"; text: string; query: number; key: number; layer: number; head: number }
  | { kind: "patch"; texts: string[]; asked: { word: string | null; token: string | null; against?: string | null; what: "hidden_states" | "head_outputs"; noising?: boolean } }
  | { kind: "parts"; text: string; token: string | null; against: string | null; word: string | null; like: string | null };

/** An experiment of an address, of today or before. */
function asToday(given: Experiment | Before): Experiment {
  if (given.kind === "score" && "text" in given) {
    const { text, query, key, layer, head } = given;
    return { kind: "score", texts: [text], asked: { query, key, layer, head } };
  }
  if (given.kind === "patch" && "token" in given.asked) {
    const { token, ...asked } = given.asked;
    return { kind: "patch", texts: given.texts, asked: { ...asked, to: token } };
  }
  if (given.kind === "parts") {
    const { text, token, against, word, like } = given;
    return { kind: "attribute", texts: [text], asked: { to: token, against, word, like } };
  }
  if (given.kind === "patches") {
    const { clean, corrupted, word, token, against = null, what = "hidden_states", direction } = given;
    return { kind: "patch", texts: [clean, corrupted], asked: { word, to: token, against, what, noising: direction === "noising" } };
  }
  return given as Experiment;
}

/** The part of an encoder-decoder that a call is of, as an ablation names it; null where a model has one. */
export function partOf({ part, name }: Pick<Call, "part" | "name">): string | null {
  return part === "cross" ? "cross" : (name.match(/, (encoder|decoder)$/)?.[1] ?? null);
}

/** What is done to a pass, in words. queries, keys: the texts whose tokens have numbers. */
export function cutName(cut: Cut, queries?: Text, keys = queries): string {
  const named = (place: string | number, text?: Text) => `“${typeof place === "number" ? readable(text?.tokens.text[place] ?? `token ${place}`) : place}”`;
  if (cut.kind === "patch") return `${named(cut.at, queries)} as in “${cut.source.length > 24 ? `${cut.source.slice(0, 23)}…` : cut.source}”, ${cut.layer === "input" ? "before layer 0" : `after layer ${cut.layer}`}`;
  const where = (cut.layer === null ? "all layers" : `layer ${cut.layer}${cut.head === null ? "" : `, head ${cut.head}`}`) + (cut.part ? ` of the ${cut.part}` : "");
  return cut.kind === "head" ? where : `${named(cut.query, queries)} → ${named(cut.key, keys)} in ${where}`;
}
