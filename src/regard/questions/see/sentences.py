"""State a summary's findings in at most three sentences, for the terminal, the page and JSON."""

from functools import partial
from typing import Any

from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.texts.highlights import LINKS, numbers_of_links
from regard.explain.texts.summary import Summary, comparable, furthest_apart, leaves_range
from regard.explain.vectors.similarity import known
from regard.explain.weights.attended import WordLink
from regard.explain.wording import number, numbered, quoted, weight_and_head, word_numbered
from regard.questions.movement import SMALLEST_CONTRIBUTION
from regard.questions.see.alignment import alignment_sentences
from regard.text.words import wordlike

SAME = 1 - 1e-6  # two vectors with at least this cosine differ only by rounding
SMALLEST_DROP = 0.01  # smallest drop of a cosine over one layer that a sentence reports
SMALLEST_DIP = 0.05  # smallest dip of a cosine below its start and end that a sentence reports
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
LIKELY = 0.5  # from this probability on, the prediction of a word or number comes before the links
PREDICTION = "{place}, the model predicts {candidate} ({probability})."
TABLE: list[list[Template]] = [
    [("both {word} vectors move {same_way} (cosine {cosine_1} and {cosine_2}, {usual}).", None),
     ("{moves_1} {way_1} and {second} {way_2}.", None),
     ("{moves} {way}, while {stays}.", None),
     ("{moves} {way}, the furthest of {count} occurrences.", lambda n: n["count"] > 2),
     ("{moves} {way}.", None),
     ("{word} stays within its range in {neutral} neutral sentences.", None)],
    [(LINKS, None),
     ("no head attends unusually strongly from {word} to another word.", None)],
    [("the two {word} vectors start {start}, fall to {lowest} after layer {low_layer} and end at cosine {end}.", None),
     ("the two {word} vectors start {start} and end at cosine {end}, with the largest drop in layer {drop}.", None),
     ("the two {word} vectors start {start} and end at cosine {end}.", None),
     ("any two of the {count} {word} vectors end at cosine {low_end}.",
      lambda n: number(n["low_end"]) == number(n["high_end"])),
     ("the {word} vectors {high_pair} end most alike (cosine {high_end}), and {low_pair} least ({low_end}).", None),
     ("after the last layer, the vector of {word} has cosine {own_end} with the vector that entered layer 0.", None)],
    [("among other words, {giver} contributes most to {word} through attention: {part:%} of its update in layer "
      "{update}{of_text}.", None)],
    [(PREDICTION, None)],
]  # fmt: skip
WHOLE_TEXT: list[list[Template]] = [
    [(PREDICTION, lambda n: n["likely"])],
    [(LINKS, None)],
    [("among content words, {moved} changes most from the first to the last layer (cosine {moved_cosine}).",
      lambda n: not n["in_text"])],
    [(PREDICTION, lambda n: not n["likely"])],
]  # fmt: skip


def findings(summary: Summary) -> list[str]:
    """Return at most three sentences about the followed word or, without one, the most distinctive links."""
    result = [] if summary.target is None else alignment_sentences(summary)[:1]
    if summary.word is None:
        texts = [sentences(WHOLE_TEXT, _text_facts(summary, n)) for n in range(len(summary.texts))]
        result += [text[n] for n in range(MAX_SENTENCES) for text in texts if len(text) > n]
    elif summary.occurrences:
        numbers: dict[str, Any] = {"word": quoted(summary.word), "count": len(summary.occurrences)}
        numbers |= _movement_facts(summary) | _link_facts(summary) | _cosine_facts(summary) | _update_facts(summary)
        numbers |= _prediction_facts(summary, 0) if summary.target is None else {}
        result += sentences(TABLE, numbers)
    return result[:MAX_SENTENCES]


def first_link(summary: Summary) -> WordLink | None:
    """Return the first occurrence's most distinctive link, whose head sentences name first."""
    return next((occurrence.link for occurrence in summary.occurrences if occurrence.link is not None), None)


def text_name(summary: Summary, text: int) -> str:
    """Return the name of a text, or of a window of a text: "text 2", "window 1 of 3"."""
    if not summary.windows:
        return f"text {summary.labels[text]}"
    shown, several = summary.windows[text], any(window.text for window in summary.windows)
    return f"{f'text {shown.text + 1}, ' if several else ''}window {shown.window + 1} of {shown.windows}"


def occurrence_name(summary: Summary, label: str) -> str:
    """Return the name of an occurrence in a sentence: "the second occurrence", "text 2", "occurrence 2a"."""
    if len(summary.occurrences) == 1:
        return "the text"
    if len(summary.texts) == 1:
        at = [occurrence.label for occurrence in summary.occurrences].index(label)
        return f"the {ORDINALS[at]} occurrence" if at < len(ORDINALS) else f"occurrence {label}"
    if summary.windows:
        text = next(occurrence.text for occurrence in summary.occurrences if occurrence.label == label)
        return text_name(summary, text) if label == summary.labels[text] else f"occurrence {label}"
    return f"text {label}" if len(summary.texts) == len(summary.occurrences) else f"occurrence {label}"


def _movement_facts(summary: Summary) -> dict[str, Any]:
    """Return the numbers of the sentence on movement, with the reference words whose neutral range the word leaves."""
    if not summary.references:
        return {}
    ranges, word = {neutral.word: neutral for neutral in summary.neutral}, quoted(summary.word or "")
    names = [occurrence_name(summary, occurrence.label) for occurrence in summary.occurrences]
    can_compare = [comparable(summary, occurrence.label) for occurrence in summary.occurrences]
    ways: list[tuple[bool, float, int, str, str, str]] = []  # of each occurrence that leaves a range
    for index, occurrence in enumerate(summary.occurrences):
        outside = []
        for reference in summary.references:
            value = reference.last_hidden_state
            way = leaves_range(summary, occurrence.label, reference.word, value)
            if reference.occurrence == occurrence.label and way is not None:
                low, high = ranges[reference.word].low[-1], ranges[reference.word].high[-1]
                assert low is not None
                assert high is not None
                beyond, usual = max(value - high, low - value), f"usually {number(low)} to {number(high)}"
                direction = f"{way} {quoted(reference.word)}"
                outside.append((way == "towards", beyond, index, direction, number(value), usual))
        ways += [max(outside)] if outside else []  # max prefers "towards", the more informative direction
    if ways:
        short = [name.removesuffix(" occurrence") for name in names]  # "the first": both are in one text
        moves = [f"{name} moves {word}" if name == nth else f"{nth} {word} moves"
                 for name, nth in zip(names, short, strict=True)]  # fmt: skip
        _, _, index, direction, cosine, usual = max(ways)
        numbers = {"moves": moves[index], "way": f"{direction} (cosine {cosine}, {usual})"}
        if len(names) == len(ways) == 2:
            way_1, way_2 = (f"{direction} (cosine {cosine}, {usual})" for *_, direction, cosine, usual in ways)
            numbers |= {"moves_1": moves[0], "way_1": way_1, "second": short[1], "way_2": way_2, "usual": usual}
            same_way = direction if ways[0][3] == ways[1][3] else None
            return numbers | {"same_way": same_way, "cosine_1": ways[0][4], "cosine_2": ways[1][4]}
        if len(names) == 2 and can_compare[1 - index]:
            it, where = ("it", f" in {names[1 - index]}") if names == short else ("the other", "")
            numbers["stays"] = f"{it} stays within its neutral range{where}"
        return numbers
    return {"neutral": summary.neutral[0].sentences if all(can_compare) else None}


def _link_facts(summary: Summary) -> dict[str, Any]:
    """Return the subject and links of a sentence: of three texts, of the two occurrences furthest apart, or of one."""
    occurrences, word = summary.occurrences, quoted(summary.word or "")
    pair = furthest_apart(summary)
    furthest = [occurrence.label for occurrence in occurrences[:2]] if pair is None else [pair.a, pair.b]
    linked = [(occurrence, occurrence.link) for occurrence in occurrences if occurrence.link is not None]
    three = len(summary.texts) == len(occurrences) == len(linked) == 3
    chosen = [item for item in linked if three or item[0].label in furthest]
    chosen = chosen if len(chosen) > 1 else linked[:1]
    names = [occurrence_name(summary, occurrence.label) for occurrence, _ in chosen]
    keys = [numbered(summary.tokens[occurrence.text], link.token) for occurrence, link in chosen]
    if three:
        weights = [f"({number(link.weight)})" for _, link in chosen]
        return {"subject": word, "links": [*map("{} in {} {}".format, keys, names, weights)]}
    weights = [weight_and_head(link.weight, link.layer, link.head) for _, link in chosen]
    if len(chosen) < 2:
        subject = f"in {names[0]}, {word}" if chosen and len(occurrences) > 1 else word
        return {"subject": subject, "links": f"{keys[0]} {weights[0]}"} if chosen else {}
    numbers = [occurrences.index(occurrence) for occurrence, _ in chosen]
    if len(summary.texts) == 1 and max(numbers) < len(ORDINALS):
        first, second = (ORDINALS[n] for n in numbers)
        other = f" and so does the {second}" if keys[0] == keys[1] else f" and the {second} to {keys[1]}"
        return {"subject": f"the {first} {word}", "links": f"{keys[0]} {weights[0]}{other} {weights[1]}"}
    return {"subject": word, "links": " and to ".join(map("{} in {} {}".format, keys, names, weights))}


def _cosine_facts(summary: Summary) -> dict[str, Any]:
    """Return the numbers of the sentence on cosines between occurrences: first, lowest and last; largest drop."""
    occurrences, pairs = summary.occurrences, summary.pairs
    if len(occurrences) == 1:
        return {"own_end": known(occurrences[0].cosines_to_start()[-1])}
    ends = [pair.end for pair in pairs if pair.end is not None]
    if not pairs or len(ends) < len(pairs):
        return {}
    low, high = min(ends), max(ends)
    pair, closest = pairs[ends.index(low)], pairs[ends.index(high)]
    if len(occurrences) > 2:
        name = partial(occurrence_name, summary) if summary.windows or len(summary.texts) == 1 else str
        low_pair, high_pair = (" and ".join(name(label).removesuffix(" occurrence") for label in (two.a, two.b))
                               for two in (pair, closest))  # fmt: skip
        return {"low_end": low, "high_end": high, "low_pair": low_pair, "high_pair": high_pair}
    start, (drop, layer) = known(pair.hidden_states[0]), pair.largest_drop()
    if start is None:
        return {}
    begin = "identical" if start >= SAME else f"at cosine {number(start)}"
    states = enumerate(map(known, pair.hidden_states[1:-1]))
    between = [(state, layer) for layer, state in states if state is not None]
    lowest, layer_of_lowest = min(between, default=(1.0, 0))
    if lowest < min(start, low) - SMALLEST_DIP:
        return {"start": begin, "end": low, "lowest": lowest, "low_layer": layer_of_lowest}
    return {"start": begin, "end": low, "drop": layer if drop >= SMALLEST_DROP else None}


def _update_facts(summary: Summary) -> dict[str, Any]:
    """Return the numbers of the sentence on the token that contributes most to an occurrence's residual update."""
    words = zip(summary.occurrences, summary.layer_updates, strict=False)
    contributions = [(word.most, occurrence) for occurrence, word in words if word.updates is not None and word.most]
    if not contributions or summary.target is not None:
        return {}
    largest, occurrence = max(contributions, key=lambda contribution: contribution[0].share)
    if largest.share < SMALLEST_CONTRIBUTION:
        return {}
    where = f" of {occurrence_name(summary, occurrence.label)}" if len(summary.occurrences) > 1 else ""
    giver = numbered(summary.tokens[occurrence.text], largest.token)
    return {"giver": giver, "part": largest.share, "update": largest.layer, "of_text": where}


def _prediction_facts(summary: Summary, text: int) -> dict[str, Any]:
    """Return the numbers of the sentence on the likeliest token at the followed word or the last position."""
    at_text = [prediction for prediction in summary.predictions if prediction.text == text and prediction.candidates]
    if not at_text:
        return {}
    prediction = at_text[-1] if summary.word is None else at_text[0]
    best, several = prediction.candidates[0], len(summary.texts) > 1
    where = {True: "after", False: "in place of", None: "at"}[prediction.after]
    position = f"{where} {numbered(summary.tokens[text], prediction.token)}"
    position += f" in {text_name(summary, text)}" if several else ""
    likely = best.probability >= LIKELY and wordlike(best.text)
    return {"place": position, "candidate": quoted(best.text), "probability": best.probability, "likely": likely}


def _text_facts(summary: Summary, text: int) -> dict[str, Any]:
    """Return the numbers of the sentences about a text without a followed word: links, prediction, changed word."""
    tokens, highlights = summary.tokens[text], summary.highlights[text]
    numbers = _prediction_facts(summary, text) if summary.target is None else {}
    alone = "" if summary.target is None else "in the encoder, "
    numbers["in_text"] = f"in {text_name(summary, text)}, " if len(summary.texts) > 1 else alone
    if highlights.moved:
        moved = highlights.moved[0]
        numbers |= {"moved": word_numbered(tokens, moved.tokens, moved.word), "moved_cosine": moved.cosine}
    if highlights.links:
        numbers |= numbers_of_links(tokens, highlights.links[:2])
        numbers["subject"] = numbers["in_text"] + numbers["subject"]
    return numbers
