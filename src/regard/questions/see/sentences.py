"""State in at most three sentences what a summary shows: on the terminal, the page and in JSON."""

import math
from itertools import pairwise
from typing import Any

import torch

from regard.display.sentences import Template, sentences
from regard.explain.texts.highlights import FAR, SHORT
from regard.explain.texts.summary import Summary, Target
from regard.explain.vectors.neutral import direction
from regard.explain.vectors.similarity import cosine
from regard.explain.weights.attended import WordLink
from regard.explain.wording import listed, named, number, numbered, quoted, word_numbered

SAME = 1 - 1e-6  # from this cosine on two vectors are identical but for rounding
SMALLEST_DROP = 0.01  # of a cosine in a layer
SMALLEST_CONTRIBUTION = 0.02  # to a residual update
TABLE: list[list[Template]] = [
    [("in cross-attention (layer {cross_layer}, {cross_head}), {alignments}.", None)],
    [
        ("{name_1} moves {word} {way_1} and {name_2} {way_2}.", lambda n: n["count"] == 2),
        ("{where} moves {word} {way}, while {inside} leaves it within its neutral range.", lambda n: n["count"] == 2),
        ("{leaving} of {count} occurrences leave the neutral range, and {where} moves furthest {way}.",
         lambda n: n["count"] > 2),
        ("{where} moves {word} {way}.", None),
        ("{word} stays within its range in {neutral} neutral sentences.", None),
        ("{word} differs most in its cosine to {differs}: {high} in {high_where}, {low} in {low_where}.", None),
    ],
    [
        ("{word} attends most distinctively to {to_1} in {name_1} ({weight_1}, {head_1}) and to {to_2} in "
         "{name_2} ({weight_2}, {head_2}).", lambda n: n["count"] == 2),
        ("{in_text}{word} attends most distinctively to {to} ({weight}, {head}).", None),
        ("no head attends from {word} to another word more than usual.", lambda n: not n["linked"]),
    ],
    [
        ("the two {word} vectors start {start} and end at cosine {end}, with the largest drop in layer {drop}.", None),
        ("the two {word} vectors start {start} and end at cosine {end}.", None),
        ("any two of the {count} {word} vectors end at cosine {low_end}.",
         lambda n: number(n["low_end"]) == number(n["high_end"])),
        ("the {count} {word} vectors end at cosines from {low_end} (between {low_pair}) to {high_end}.", None),
        ("after the last layer, the vector of {word} has cosine {own_end} with the vector that entered layer 0.", None),
    ],
    [("among other words, {giver} contributes most to {word} through attention: {part:%} of its update in layer "
      "{update}{of_text}.", None)],
    [("{place}, the model predicts {candidate} ({probability}).", None)],
]  # fmt: skip
WHOLE_TEXT: list[list[Template]] = [
    [("in cross-attention (layer {cross_layer}, {cross_head}), {alignments}.", None)],
    [("{in_text}{query} attends distinctively to {far} ({weight}, {head}), then to {key_2} ({weight_2}).",
      lambda n: n["head"] == n.get("head_2")),
     ("{in_text}{query} attends distinctively to {far} ({weight}, {head}).", None)],
    [("{place}, the model predicts {candidate} ({probability}).", None)],
    [
        ("{in_text}{query} attends distinctively to {key} ({weight}, {head}) and {key_2} ({weight_2}, {head_2}).",
         None),
        ("{in_text}{query} attends distinctively to {key} ({weight}, {head}).", None),
    ],
    [("among content words, {moved} changes most from the first to the last layer (cosine {moved_cosine}).",
      lambda n: not n["in_text"])],
]  # fmt: skip


def findings(summary: Summary) -> list[str]:
    """Return the sentences about a followed word, or about what is most worth a look."""
    target = summary.target
    if summary.word is None:
        several = len(summary.texts) > 1
        texts = [_whole_text(summary, n, several) for n in range(len(summary.texts))]
        written = [_alignments(summary, target)] if target is not None else [{}]
        if not several:
            return sentences(WHOLE_TEXT, written[0] | texts[0])
        first = sentences(WHOLE_TEXT[:1], written[0])
        of_texts = [sentences(WHOLE_TEXT[1:4], numbers) for numbers in texts]
        return [*first, *(said[0] for said in of_texts if said), *(said[1] for said in of_texts if len(said) > 1)][:3]
    numbers = _alignments(summary, target) if target is not None else {}
    if summary.occurrences:
        numbers |= {"word": quoted(summary.word), "count": len(summary.occurrences)}
        numbers |= _movement(summary) | _links(summary) | _ends(summary) | _contribution(summary)
        numbers |= _prediction(summary, 0) if target is None else {}
    return sentences(TABLE, numbers)


def first_link(summary: Summary) -> WordLink | None:
    """Return the link whose head the sentences name first."""
    return next((own.link for own in summary.occurrences if own.link is not None), None)


def occurrence_name(summary: Summary, label: str) -> str:
    """Name an occurrence by the label that tables give it."""
    if len(summary.occurrences) == 1:
        return "the text"
    return f"text {label}" if len(summary.texts) == len(summary.occurrences) else f"occurrence {label}"


def comparable(summary: Summary, label: str, word: str | None = None) -> bool:
    """Tell whether an occurrence's cosines to reference words, or to this one, can be compared with neutral sentences.

    They can't without such sentences, for a word that is split into other tokens there, and for massive activations.
    """
    left_out = [] if summary.movement is None else summary.movement.left_out
    massive = any(out.name == word if out.kind == "reference" else out.of == label for out in left_out)
    return (
        bool(summary.neutral) and summary.control is not None and label not in summary.control.otherwise and not massive
    )


def leaves_range(summary: Summary, label: str, word: str, value: float) -> str | None:
    """Return "towards" or "away from" if an occurrence's cosine to a reference word leaves its neutral range."""
    neutral = next((neutral for neutral in summary.neutral if neutral.word == word), None)
    return direction(value, neutral) if neutral is not None and comparable(summary, label, word) else None


def _movement(summary: Summary) -> dict[str, Any]:
    """Where texts move the word, by the reference words whose neutral range it leaves furthest."""
    if not summary.references:
        return {}
    ranges = {neutral.word: neutral for neutral in summary.neutral}
    numbers: dict[str, Any] = {}
    ways: list[tuple[bool, float, int, str]] = []
    for place, occurrence in enumerate(summary.occurrences):
        name = occurrence_name(summary, occurrence.label)
        numbers[f"name_{place + 1}"] = name
        outside = []
        for reference in summary.references:
            value = reference.last_hidden_state
            way = leaves_range(summary, occurrence.label, reference.word, value)
            if reference.occurrence == occurrence.label and way is not None:
                low, high = ranges[reference.word].low[-1], ranges[reference.word].high[-1]
                assert low is not None
                assert high is not None
                text = (
                    f"{way} {quoted(reference.word)} (cosine {number(value)}, neutral {number(low)} to {number(high)})"
                )
                outside.append((way == "towards", max(value - high, low - value), place, text))
        if outside:  # where it goes says more than what it leaves
            ways.append(max(outside))
            numbers[f"way_{place + 1}"] = ways[-1][-1]
        elif comparable(summary, occurrence.label):
            numbers["inside"] = name
    if ways:
        *_, place, way = max(ways)
        return numbers | {"way": way, "where": numbers[f"name_{place + 1}"], "leaving": len(ways)}
    if all(comparable(summary, occurrence.label) for occurrence in summary.occurrences):
        return numbers | {"neutral": summary.neutral[0].sentences}
    spread = []
    for word in dict.fromkeys(reference.word for reference in summary.references):
        row = sorted(
            (reference.last_hidden_state, reference.occurrence)
            for reference in summary.references
            if reference.word == word
        )
        spread.append((row[-1][0] - row[0][0], word, row[0], row[-1]))
    most, word, lowest, highest = max(spread)
    if most < SMALLEST_DROP:
        return numbers
    numbers |= {"differs": quoted(word), "low": lowest[0], "low_where": occurrence_name(summary, lowest[1])}
    return numbers | {"high": highest[0], "high_where": occurrence_name(summary, highest[1])}


def _links(summary: Summary) -> dict[str, Any]:
    """The most distinctive link of each occurrence to another word."""
    numbers: dict[str, Any] = {"linked": False}
    for place, occurrence in enumerate(summary.occurrences, 1):
        link, name = occurrence.link, occurrence_name(summary, occurrence.label)
        if link is None:
            continue
        to = numbered(summary.tokens[occurrence.text], link.token)
        named = {"to": to, "weight": link.weight, "head": f"layer {link.layer}, head {link.head}"}
        numbers |= {f"{key}_{place}": value for key, value in (named | {"name": name}).items()}
        if not numbers["linked"]:
            where = f"in {name}, " if len(summary.occurrences) > 1 else ""
            numbers |= named | {"linked": True, "in_text": where}
    return numbers


def _ends(summary: Summary) -> dict[str, Any]:
    """How alike the occurrences begin and end, and the layer that makes them differ most."""
    occurrences, pairs = summary.occurrences, summary.pairs
    if len(occurrences) == 1:
        first, last = (occurrences[0].hidden_states[n] for n in (0, -1))
        if first is None or last is None or len(first) != len(last):
            return {}
        return {"own_end": _known(cosine(torch.tensor(first), torch.tensor(last)))}
    ends = [(end, pair) for pair in pairs if (end := _known(pair.hidden_states[-1])) is not None]
    if len(ends) < len(pairs):
        return {}
    (low, least), (high, _) = (pick(ends, key=lambda end: end[0]) for pick in (min, max))
    if len(occurrences) > 2:
        return {"low_end": low, "high_end": high, "low_pair": f"{least.a} and {least.b}"}
    start = _known(least.hidden_states[0])
    if start is None:
        return {}
    states = [_known(state) for state in least.hidden_states]
    drops = [(a - b, layer) for layer, (a, b) in enumerate(pairwise(states)) if a is not None and b is not None]
    drop, layer = max(drops, key=lambda each: each[0], default=(0.0, 0))
    begin = "identical" if start >= SAME else f"at cosine {number(start)}"
    return {"start": begin, "end": low, "drop": layer if drop >= SMALLEST_DROP else None}


def _known(value: float | None) -> float | None:
    """A cosine, None for a state that a saved trace does not hold, or for a zero vector."""
    return None if value is None or math.isnan(value) else value


def _contribution(summary: Summary) -> dict[str, Any]:
    """The other word that contributed most to an occurrence's update in a layer."""
    of = {occurrence.label: occurrence for occurrence in summary.occurrences}
    most = [(word.most.share, word) for word in summary.layer_updates if word.updates is not None and word.most]
    if not most or summary.target is not None:
        return {}
    part, word = max(most, key=lambda each: each[0])
    if part < SMALLEST_CONTRIBUTION or word.most is None:
        return {}
    giver = numbered(summary.tokens[of[word.occurrence].text], word.most.token)
    several = len(summary.occurrences) > 1
    where = f" of {occurrence_name(summary, word.occurrence)}" if several else ""
    return {"giver": giver, "part": part, "update": word.most.layer, "of_text": where}


def _prediction(summary: Summary, text: int) -> dict[str, Any]:
    """What a language model predicts after, or in place of, the followed word, or at the last such position."""
    at = [made for made in summary.predictions if made.text == text and made.candidates]
    if not at:
        return {}
    made = at[-1] if summary.word is None else at[0]
    best, several = made.candidates[0], len(summary.texts) > 1
    where = {True: "after", False: "in place of", None: "at"}[made.after]
    place = f"{where} {numbered(summary.tokens[text], made.token)}"
    place += f" in text {summary.labels[text]}" if several else ""
    return {"place": place, "candidate": quoted(best.text), "probability": best.probability}


def _whole_text(summary: Summary, text: int, several: bool) -> dict[str, Any]:
    """What is most worth a look in a text in which no word is followed."""
    tokens, found = summary.tokens[text], summary.highlights[text]
    numbers = _prediction(summary, text) if summary.target is None else {}
    alone = "" if summary.target is None else "in the encoder, "
    numbers["in_text"] = f"in text {summary.labels[text]}, " if several else alone
    if found.moved:
        moved = found.moved[0]
        numbers |= {"moved": word_numbered(tokens, moved.tokens, moved.word), "moved_cosine": moved.cosine}
    if found.links:
        first, second = found.links[0], found.links[1] if len(found.links) > 1 else None
        numbers |= {"query": numbered(tokens, first.query), "weight": first.weight}
        numbers |= {"head": f"layer {first.layer}, head {first.head}"}
        if len(tokens) > SHORT and abs(gap := first.key - first.query) > FAR:
            numbers["far"] = f"{named(tokens, first.key)}, {abs(gap)} tokens {'later' if gap > 0 else 'earlier'}"
        else:
            numbers["key"] = numbered(tokens, first.key)
        if second is not None and second.query == first.query:
            numbers |= {"key_2": numbered(tokens, second.key), "weight_2": second.weight}
            numbers["head_2"] = f"layer {second.layer}, head {second.head}"
    return numbers


def _alignments(summary: Summary, target: Target) -> dict[str, Any]:
    """The target tokens that attend most to a token of their text, as they are written; those of a followed word."""
    links = []
    for alignment in target.alignments:
        followed = {n for o in summary.occurrences if o.text == alignment.text for n in o.tokens}
        written = {n for o in target.summary.occurrences if o.text == alignment.text for n in o.tokens}
        tokens = target.summary.tokens[alignment.text]
        for row in alignment.tokens:
            if row.written is None or not row.written.top or tokens[row.token].special:
                continue
            best = row.written.top[0]
            if summary.word is None or row.token in written or best.token in followed:
                source = numbered(summary.tokens[alignment.text], best.token)
                links.append((best.weight, numbered(tokens, row.token), source, alignment))
    links.sort(key=lambda link: -link[0])
    links = [link for link in links if link[3].written_layer == links[0][3].written_layer][:2]
    if not links:
        return {}
    first = links[0][3]
    head = "mean of heads" if first.head is None else f"head {first.head}"
    verbs = ("attends most to", "to")
    named = listed([f"{token} {verb} {source} ({number(weight)})"
                    for verb, (weight, token, source, _) in zip(verbs, links, strict=False)])  # fmt: skip
    return {"alignments": named, "cross_layer": first.written_layer, "cross_head": head}
