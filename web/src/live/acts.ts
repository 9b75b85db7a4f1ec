// What a server can do at the head, link or token that is looked at, in words, and what is asked for then.
import type { Text } from "../data/format";
import type { At, PageState } from "../page_state.svelte";
import { nameOf, readable, unitAt, wordsOf } from "../words";
import { cutName, partOf, type Asked, type Cut, type Experiment } from "./address";

/** asked: for the page that is shown. writes: whether its model goes on with texts; pairs: whether it reads pairs. */
export function actsOn(shared: PageState, asked: Asked, writes: boolean, pairs: boolean, at: At): [says: string, wanted: Partial<Asked>][] {
  if (asked.other != null) return [];
  const { page } = shared;
  const call = page.calls[at.call]!;
  const [queries, keys] = [page.texts[call.queries]!, page.texts[call.keys]!];
  const { layer } = call;
  const part = partOf(call);
  const head = at.head === null ? null : (call.head_numbers?.[at.head] ?? at.head);
  const token = at.query ?? at.key;
  const about = asked.ablations.length ? (asked.about ?? null) : asked.texts.length > 1 && page.texts.length === asked.texts.length ? page.texts.indexOf(queries) : null;
  const changed = (cut: Cut, says = `cut ${cutName(cut, queries, keys)}`): [string, Partial<Asked>] => [
    says,
    { ablations: [...asked.ablations, cut], experiment: null, about, watched: wordAt(queries, token) },
  ];
  const acts: [string, Partial<Asked>][] = [];
  const { query, key } = at;
  if (query !== null && key !== null) acts.push(changed({ kind: "edge", query, key, layer, head, part }));
  if (head !== null) acts.push(changed({ kind: "head", layer, head, part }));
  if (pairs || asked.ablations.length || asked.written !== null) return acts;
  const text = queries.text;
  const ask = (says: string, experiment: Experiment) => acts.push([says, { experiment }]);
  if (query !== null && key !== null && head !== null) ask(`why “${readable(queries.tokens.text[query]!)}” → “${readable(keys.tokens.text[key]!)}”?`, { kind: "score", texts: [text], asked: { query, key, layer, head } });
  const other = page.texts.length === 2 && asked.texts.length === 2 ? page.texts.find((each) => each !== queries) : null;
  if (other && token !== null) {
    const there = other.tokens.text.indexOf(queries.tokens.text[token]!); // the same token, or else the one in the same place
    const cut: Cut = { kind: "patch", what: "hidden_states", layer, source: other.text, at: token, source_at: there < 0 ? Math.min(token, other.tokens.text.length - 1) : there };
    acts.push(changed(cut, `patch from ${other.name} after layer ${layer}`));
  }
  const { word, references } = asked.followed ?? { word: null, references: [] };
  const like = references.find((each) => text.includes(each));
  if (word && like) ask(`why is “${word}” similar to “${like}”?`, { kind: "attribute", texts: [text], asked: { to: null, against: null, word, like } });
  if (word && other && other.tokens.text.length === queries.tokens.text.length)
    for (const [what, says] of [["hidden_states", "states"], ["head_outputs", "heads"]] as const)
      ask(`which ${says} make “${word}” differ?`, { kind: "patch", texts: asked.texts, asked: { word, to: null, what } });
  const to = writes && token ? queries.tokens.text[token]!.trim() : "";
  if (to && queries.tokens.start[token!]) ask(`why does “${to}” come next?`, { kind: "attribute", texts: [Array.from(text).slice(0, queries.tokens.start[token!]).join("").trimEnd()], asked: { to, against: null, word: null, like: null } });
  return acts;
}

/** The word that a token is of, where the text has it once: a change is seen at it. */
function wordAt(text: Text, token: number | null): string | null {
  const names = wordsOf(text).map((unit) => nameOf(text, unit).trim());
  const unit = unitAt(wordsOf(text), token);
  const same = names.filter((name) => unit !== null && name.toLowerCase() === names[unit]!.toLowerCase());
  return same.length === 1 && !text.tokens.special.includes(token!) && /[\p{L}\p{N}]/u.test(same[0]!) ? same[0]! : null;
}
