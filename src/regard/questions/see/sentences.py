"""State in a few sentences what a summary shows, most telling first: what `regard see` and the page begin with.

Every number in a sentence is one of the summary's; a sentence whose condition the numbers do not meet is not said.
"""

import math
from itertools import pairwise

import torch

from regard.explain.logits.predictions import Prediction
from regard.explain.texts.occurrences import Occurrence, Pair
from regard.explain.texts.summary import Summary, Target
from regard.explain.vectors.similarity import cosine
from regard.explain.wording import number, numbered, quoted, word_numbered
from regard.questions.movement.sentences import movement_findings
from regard.questions.see.looks import SHARP, largest_look_in_words, link_told, push_told, row_told

SAME = 1 - 1e-6  # a cosine from which on two vectors are called the same: less is rounding
NEAR = 0.01  # cosines that differ by less are called about equal


def findings(summary: Summary) -> list[str]:
    """Compose the sentences about a followed word, or about what is most worth a look: few where numbers bear few."""
    if summary.word is None:
        sentences = [sentence for text in range(len(summary.texts)) for sentence in _worth(summary, text)]
    elif summary.occurrences:
        sentences = [sentence(summary) for sentence in (link_told, row_told, _start, _end)]
        sentences += movement_findings(summary) if summary.references else []
        if summary.target is None:
            sentences += [push_told(summary), _said(summary)]
    else:  # of an encoder-decoder, a word of the target alone
        sentences = []
    if summary.target is not None:
        sentences += _translated(summary, summary.target)
    return [sentence for sentence in sentences if sentence]


def _worth(summary: Summary, text: int) -> list[str]:
    """What is most worth a look in a text in which no word is followed."""
    found = summary.highlights[text]
    where = f"In text {summary.labels[text]}, of" if len(summary.texts) > 1 else "Of"
    aside = " (sinks aside)" if summary.sinks[text] else ""
    sentences = []
    if found.moved:
        first, *others = [
            (word_numbered(summary.tokens[text], each.tokens, each.word), each.cosine) for each in found.moved[:3]
        ]
        then = "".join(f", then {word} {number(moved)}" for word, moved in others)
        says = f"moves most: it leaves the last layer at cosine {number(first[1])} to what entered layer 0"
        sentences.append(f"{where} all words{aside} {first[0]} {says}{then}.")
    if found.links:
        rows = next(iter(summary.overview[text]), [])
        head = rows[0].head if rows else None  # the one that was asked for
        whose = "" if head is None else f" of head {head}"
        held = "" if len(rows) == len(summary.layers) else " in the layers held"
        lead = f"{where} the links{whose}{held} between words that are no neighbours{aside}"
        sentences.append(f"{lead}, {_sharpest(summary, text, 'head' if head is None else 'layer')}.")
    own = [said for said in summary.predictions if said.text == text and said.candidates]
    return sentences + [_says(said, summary) for said in own[:2]]


def _sharpest(summary: Summary, text: int, each: str) -> str:
    """The sharpest links of a text. each: what has one at most, a head or a layer."""
    tokens, links = summary.tokens[text], summary.highlights[text].links
    sharp = [link for link in links[:3] if link.weight >= SHARP]
    if not sharp:
        return f"none is sharp: {largest_look_in_words(links[0].weight)}"
    named = [
        f"{numbered(tokens, link.query)} looks at {numbered(tokens, link.key)} in layer {link.layer}, head {link.head} "
        f"({number(link.weight)})"
        for link in sharp
    ]
    return f"the sharpest, one a {each} and pair: {'; '.join(named)}"


def _translated(summary: Summary, target: Target) -> list[str]:
    """Where target tokens look as they are written; where a word is followed, it or what looks most at it."""
    sentences = []
    for alignment in target.alignments[:3]:
        own = {n for o in summary.occurrences if o.text == alignment.text for n in o.tokens}
        theirs = {n for o in target.summary.occurrences if o.text == alignment.text for n in o.tokens}
        tokens, sources = target.summary.tokens[alignment.text], summary.tokens[alignment.text]
        links = [
            (each.written.top[0].weight, each.token, each.written.top[0].token)
            for each in alignment.tokens
            if each.written is not None and each.written.top and not tokens[each.token].special
            if summary.word is None or each.token in theirs or each.written.top[0].token in own
        ]
        where = f"In text {summary.labels[alignment.text]}, as" if len(target.alignments) > 1 else "As"
        head = "mean of heads" if alignment.head is None else f"head {alignment.head}"
        aside = "special tokens and sinks" if alignment.sinks else "special tokens"
        lead = f"{where} the target is written (layer {alignment.written_layer}, {head}; {aside} aside)"
        named = ", ".join(
            f"{numbered(tokens, out)} looks most at {numbered(sources, of)} {number(weight)}"
            for weight, out, of in sorted(links)[:-4:-1]
        )
        if links:
            sentences.append(f"{lead}, {named}.")
        elif own:
            sentences.append(f"{lead}, no token looks most at {quoted(summary.word or '')}.")
    return sentences


def _start(summary: Summary) -> str:
    """Whether the occurrences start as the same vector."""
    seen, word = summary.occurrences, quoted(summary.word or "")
    if len(seen) == 1:
        return _pieces(summary, seen[0])
    every = "Both" if len(seen) == 2 else f"All {len(seen)}"
    if all(pair.token_embeddings_equal for pair in summary.pairs):
        enters = [alike for pair in summary.pairs if (alike := _seen_cosine_or_none(pair.hidden_states[0])) is not None]
        if len(enters) < len(summary.pairs):
            return f"{every} {word} start as the same learned embedding."
        if min(enters) >= SAME:
            return f"{every} {word} start as the same vector."
        moved = len({tuple(each.tokens) for each in seen}) > 1
        apart = "their positions set them apart before layer 0" if moved else "they enter layer 0 apart"
        return f"{every} {word} start as the same learned embedding; {apart} (cosine {number(min(enters))})."
    cosines = [(_seen_cosine_or_none(pair.token_embeddings), pair) for pair in summary.pairs]
    known = [(alike, pair) for alike, pair in cosines if alike is not None]
    if not known:
        return ""
    least, pair = min(known, key=lambda each: each[0])
    between = "" if len(seen) == 2 else f" between {pair.a} and {pair.b}, the least"
    return f"The learned embeddings of {word} differ, for its tokens do: cosine {number(least)}{between}."


def _seen_cosine_or_none(value: float | None) -> float | None:
    """A cosine, None where there is none: not held, or with a zero vector."""
    return None if value is None or math.isnan(value) else value


def _pieces(summary: Summary, only: Occurrence) -> str:
    tokens = summary.tokens[only.text]
    pieces = [tokens[n].text.strip() for n in only.tokens]
    if len(pieces) == 1:
        return f"{quoted(summary.word or '')} is one token, number {only.tokens[0]} of {len(tokens)}, counted from 0."
    return f"{quoted(summary.word or '')} is read as {len(pieces)} tokens: {' '.join(pieces)}."


def _end(summary: Summary) -> str:
    """How alike the occurrences are after the last layer; of a single one, how far it is from where it began."""
    seen, last = summary.occurrences, len(summary.occurrences[0].hidden_states) - 2
    if len(seen) == 1:
        first, final = seen[0].hidden_states[0], seen[0].hidden_states[-1]
        if first is None or final is None or len(first) != len(final):
            return ""
        apart = _seen_cosine_or_none(cosine(torch.tensor(first), torch.tensor(final)))
        says = f"After layer {last} its vector is at cosine"
        return "" if apart is None else f"{says} {number(apart)} to the one that entered layer 0."
    ends = [
        (alike, pair) for pair in summary.pairs if (alike := _seen_cosine_or_none(pair.hidden_states[-1])) is not None
    ]
    if len(ends) < len(summary.pairs):
        return ""
    (low, least), (high, most) = (each(ends, key=lambda end: end[0]) for each in (min, max))
    if len(seen) == 2:
        began = _seen_cosine_or_none(least.hidden_states[0])
        nearer = "" if began is None or low - began < NEAR else f", nearer than they began ({number(began)})"
        return f"They end at cosine {number(low)} after layer {last}{nearer}{_drop(least)}."
    if number(low) == number(high):
        return f"After layer {last} any two of them are about as alike (cosine {number(low)})."
    return (
        f"After layer {last}, {least.a} and {least.b} are least alike (cosine {number(low)}), "
        f"{most.a} and {most.b} most ({number(high)})."
    )


def _drop(pair: Pair) -> str:
    """In which layer two occurrences part most, where they part at all."""
    states = [_seen_cosine_or_none(each) for each in pair.hidden_states]
    steps = [(n, a, b) for n, (a, b) in enumerate(pairwise(states)) if a is not None and b is not None]
    if not steps:
        return ""
    held = "" if len(steps) == len(states) - 1 else "of the layers held, "
    layer, before, after = min(steps, key=lambda each: each[2] - each[1])
    if before - after < NEAR:
        return f": {held}no layer parts them by {NEAR:.2f}"
    return f"; {held}layer {layer} parts them most ({number(before)} → {number(after)})"


def _said(summary: Summary) -> str:
    """What a language model would say after or at the first occurrence."""
    own = [said for said in summary.predictions if said.occurrence is not None and said.candidates]
    if not own or summary.references or summary.target is not None:
        return ""
    return _says(own[0], summary)


def _says(said: Prediction, summary: Summary) -> str:
    best, after = said.candidates[0], "After" if said.after else "In the place of"
    where = f" in text {summary.labels[said.text]}" if len(summary.texts) > 1 else ""
    at = numbered(summary.tokens[said.text], said.token)
    return f"{after} {at}{where} the model would say {quoted(best.text)} ({number(best.probability)})."
