"""Tell where a followed word looks: the top of its whole row, its sharpest link, and what attention brought it.

A row is told with the word itself, special tokens and sinks in it. A sentence about other words names what it leaves
out.
"""

from collections.abc import Sequence

from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.weights.attended import Attended
from regard.explain.weights.word_links import WordLink, other_words
from regard.explain.wording import number, numbered, quoted
from regard.text.word_pieces import spelling, words

FAINT = 0.02  # weights and shares below it are not worth a name
SHARP = 0.3  # a weight from which on a head is said to link two words
NAMED = 4  # parts of a row that are named at most
TOLD = 3  # occurrences that are told of at most


def layer_looked_at(summary: Summary) -> int | None:
    """Find the layer in which the occurrences look at other words most: its place in their `attends`, None for none."""
    most = given_to_others(summary)
    return most.index(max(most)) if most else None


def given_to_others(summary: Summary) -> list[float]:
    """Sum over the occurrences the largest weight that each gives another word, sinks aside: one sum a layer held."""
    seen = summary.occurrences
    others = [_others(summary, each) for each in seen]
    return [
        sum(max(((row.weights or [])[n] for n in words), default=0.0) for row, words in zip(rows, others, strict=True))
        for rows in zip(*(each.attends for each in seen), strict=False)
    ]


def row_told(summary: Summary) -> str:
    """What each occurrence looks at most, itself included, in the layer in which they look at other words most."""
    seen, place = summary.occurrences, layer_looked_at(summary)
    if place is None:
        return ""
    words = {each.label: other_words(summary.tokens[each.text], each.tokens) for each in seen}
    if not any((row.weights or [])[n] > 0 for each in seen for row in each.attends for n in words[each.label]):
        return f"There is no other word that {quoted(summary.word or '')} could look at."
    lead = (
        f"What {quoted(summary.word or '')} looks at most in layer {seen[0].attends[place].layer} (mean of its heads)"
    )
    return of_each(summary, lead, [_top(summary, each, each.attends[place]) for each in told_of(summary)])


def link_told(summary: Summary) -> str:
    """Which other word each occurrence singles out most, what others give there, and in which head."""
    seen = told_of(summary)
    links = [each.link for each in seen]
    if all(link is None for link in links):
        return ""
    held = len(summary.occurrences[0].attends) == len(summary.layers)
    told = [
        "none"
        if link is None
        else f"{numbered(summary.tokens[own.text], link.token)} {number(link.weight)} "
        f"(others {number(link.others)}) in layer {link.layer}, head {link.head}"
        for own, link in zip(seen, links, strict=True)
    ]
    aside = " (sinks aside)" * any(summary.sinks[each.text] for each in told_of(summary))
    lead = f"What {quoted(summary.word or '')} singles out most{aside}"
    return of_each(summary, lead if held else f"{lead} in the layers held", told)


def first_link_told(summary: Summary) -> WordLink | None:
    """Find the first link that `link_told` names with its head; None where no head links a word."""
    return next((each.link for each in told_of(summary) if each.link is not None), None)


def push_told(summary: Summary) -> str:
    """Which other word had the largest share in a step of each occurrence, where layers can be split exactly."""
    seen, updates = told_of(summary), {each.occurrence: each for each in summary.layer_updates}
    if any(each.label not in updates or updates[each.label].updates is None for each in seen):
        return ""
    most = [each if each and each.share >= FAINT else None for each in (updates[own.label].most for own in seen)]
    if not any(most):
        return ""
    told = [
        f"{_part(summary, own, each.token)}, {each.share:.0%}"
        f"{' (others pull the other way)' * (round(each.share, 2) > 1)} in layer {each.layer}"
        if each
        else f"none has {FAINT:.0%}"
        for own, each in zip(seen, most, strict=True)
    ]
    aside = " (sinks aside)" * any(summary.sinks[each.text] for each in told_of(summary))
    return of_each(summary, f"The other word{aside} with the largest share in a layer's step, by attention", told)


def largest_look_in_words(weight: float) -> str:
    """The largest of some weights, where it is not sharp: 0.298 is not told as 0.30, which would be."""
    return f"{number(weight)} at most" if weight < SHARP - 0.005 else f"{weight:.3f} at most"


def told_of(summary: Summary) -> list[Occurrence]:
    """Choose the occurrences that are told of, in their order: the first of each text before any second one."""
    seen = summary.occurrences
    first = {each.text: n for n, each in reversed(list(enumerate(seen)))}
    chosen = sorted(range(len(seen)), key=lambda n: (n not in first.values(), n))[:TOLD]
    return [seen[n] for n in sorted(chosen)]


def of_each(summary: Summary, lead: str, told: Sequence[str]) -> str:
    """Join to one sentence, after a lead, what is told of each of the occurrences that are told of."""
    seen = summary.occurrences
    if len(seen) == 1:
        return f"{lead}: {told[0]}."
    text = "text " if len(seen) == len(summary.texts) else ""
    parts = "; ".join(f"{text}{own.label}: {says}" for own, says in zip(told_of(summary), told, strict=True))
    more = f" (and {len(seen) - len(told)} more)" if len(seen) > len(told) else ""
    return f"{lead}, {parts}{more}."


def _others(summary: Summary, occurrence: Occurrence) -> list[int]:
    """The tokens of other words in an occurrence's text, sinks aside."""
    sinks = {sink.token for sink in summary.sinks[occurrence.text]}
    return other_words(summary.tokens[occurrence.text], occurrence.tokens, sinks)


def _top(summary: Summary, occurrence: Occurrence, row: Attended) -> str:
    """The largest parts of a row in order, the word itself as one of them: to the first other word, two at least."""
    weights, own, words = row.weights or [], occurrence.tokens, _others(summary, occurrence)
    parts = {own[0]: sum(weights[n] for n in own)} | {n: w for n, w in enumerate(weights) if n not in own}
    chosen: list[int] = []
    for token in sorted(parts, key=lambda n: -parts[n])[:NAMED]:
        if parts[token] < FAINT or (len(chosen) > 1 and not set(words).isdisjoint(chosen)):
            break
        chosen.append(token)
    if not chosen:
        return f"no token takes {FAINT:.2f}"
    names = [_part(summary, occurrence, token) for token in chosen]
    told = [
        f"{name}{f' ({token})' if names.count(name) > 1 else ''} {number(parts[token])}"
        for name, token in zip(names, chosen, strict=True)
    ]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])}, then {told[-1]}"


def _part(summary: Summary, occurrence: Occurrence, number: int) -> str:
    """A part of a row in a sentence; the followed word, elsewhere in the text, is called another."""
    token = summary.tokens[occurrence.text][number]
    if number in occurrence.tokens:
        return "itself" if len(occurrence.tokens) == 1 else "its own tokens together"
    if token.special:
        return token.text.strip() or "a special token"
    if number in (sink.token for sink in summary.sinks[occurrence.text]):
        return f"the sink {quoted(token.text)}"
    tokens = summary.tokens[occurrence.text]
    word = next(each for each in words(tokens) if number in each)
    same = spelling(tokens, word).casefold() == occurrence.word.strip().casefold()
    return f"{'another ' * same}{numbered(tokens, number)}"
