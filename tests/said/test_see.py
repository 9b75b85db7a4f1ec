"""Every sentence of `see` about a followed word is true of the whole rows that it speaks of."""

import re
from collections import Counter

import pytest
from torch import Tensor

from regard.explain.texts.occurrences import Occurrence
from regard.questions.see.sentences import findings
from tests.said.random_summaries import Drawn, cosine, drawn
from tests.said.templates import Groups, Template, hold, shows

DRAWN = 100
TOKEN = r"“(?P<text>.+?)”(?: of “.+?”)?(?: \((?P<token>\d+)\))?"
EACH = r"(?P<each>(?:: |, (?:text )?\d[ab]?: ).+)\."


def told_of(groups: Groups, numbers: Drawn) -> list[tuple[Occurrence, str]]:
    """What a sentence says of each occurrence; of many three, each text's first before others."""
    said, seen = groups["each"] or "", numbers.summary.occurrences
    if len(seen) == 1:
        assert said.startswith(": ")
        return [(seen[0], said.removeprefix(": "))]
    more = re.search(r" \(and (\d+) more\)$", said)
    parts = said.removeprefix(", ").removesuffix(more[0] if more else "").split("; ")
    assert len(parts) + int(more[1] if more else 0) == len(seen)
    pairs = [part.split(": ", 1) for part in parts]
    own = [(numbers.occurrence(label), says) for label, says in pairs]
    firsts = [n for n, each in enumerate(seen) if each.text not in {other.text for other in seen[:n]}]
    rest = [n for n in range(len(seen)) if n not in firsts]
    assert [each for each, _ in own] == [seen[n] for n in sorted((firsts + rest)[:3])]
    return own


def who(groups: Groups, numbers: Drawn) -> None:
    assert groups["who"] == f"“{numbers.summary.word}”"


def leaves_sinks_out(groups: Groups, numbers: Drawn, own: list[Occurrence]) -> None:
    """Sinks are named as left out where there are any."""
    assert bool(groups["sinks"]) == any(numbers.sinks(each) for each in own)


def token_of(groups: Groups, numbers: Drawn, own: Occurrence) -> int:
    """The token that is named: by its number where others of the text are called the same."""
    called = [n for n, token in enumerate(numbers.tokens(own)) if token.text == groups["text"]]
    if groups["token"] is None:
        assert len(called) == 1
        return called[0]
    assert len(called) > 1
    assert int(groups["token"]) in called
    return int(groups["token"])


def row(groups: Groups, numbers: Drawn) -> None:
    who(groups, numbers)
    for own, says in told_of(groups, numbers):
        (shown,) = [each for each in own.attends if str(each.layer) == groups["layer"]]
        parts = {own.tokens[0]: sum(shown.weights[n] for n in own.tokens)}
        parts |= {n: weight for n, weight in enumerate(shown.weights) if n not in own.tokens}
        order = sorted(parts, key=lambda n: -parts[n])
        if says == "no token takes 0.02":
            assert parts[order[0]] < 0.02
            continue
        named = says.replace(", then ", ", ").split(", ")
        assert ", then " in says or len(named) == 1
        for number, item in zip(order, named, strict=False):  # the i-th that is named is the i-th of the whole row
            match = re.fullmatch(r"(?P<name>.+) (?P<weight>[\d.]+)", item)
            assert match
            part(match["name"], numbers, own, number)
            shows(match["weight"], parts[number])
        assert len({item.rsplit(" ", 1)[0] for item in named}) == len(named)  # no two under one name
        words = numbers.others(own)
        assert (
            len(named) in (4, len(order))
            or parts[order[len(named)]] < 0.02
            or any(n in words for n in order[: len(named)])
        )


def part_name(numbers: Drawn, own: Occurrence, number: int) -> str:
    token = numbers.tokens(own)[number]
    if number in own.tokens:
        return "itself" if len(own.tokens) == 1 else "its own tokens together"
    if token.special:
        return token.text
    return f"{'the sink ' * (number in numbers.sinks(own))}“{token.text}”"


def part(said: str, numbers: Drawn, own: Occurrence, number: int) -> None:
    """A part of a row has its token's name, of a piece with its word, and a number where others are called the same."""
    match = re.fullmatch(rf"(?:another )?{TOKEN}", said)
    name = re.sub(r"(?: of “[^”]+”)?(?: \(\d+\))?$", "", said.removeprefix("another "))
    assert name == part_name(numbers, own, number), (said, number)
    if match:
        assert token_of(match, numbers, own) == number
        whole = re.search(r" of “([^”]+)”", said)
        assert said.startswith("another ") == ((whole[1] if whole else match["text"]).lower() == own.word.lower())


def alone(groups: Groups, numbers: Drawn) -> None:
    seen = numbers.summary.occurrences
    who(groups, numbers)
    for own in seen:
        for n, token in enumerate(numbers.tokens(own)):
            word = not token.special and n not in own.tokens and any(c.isalnum() for c in token.text)
            assert not word or all(row.weights[n] == 0 for row in own.attends)


def others_give(rows: Tensor, i: int, j: int) -> tuple[float, float]:
    """What one head's other queries give as far from them, the more of all and of the eight nearest, and this key."""
    length = len(rows)
    far = {q: float(rows[q, q + j - i]) for q in range(length) if q != i and 0 <= q + j - i < length}
    near = [weight for q, weight in far.items() if abs(q - i) <= 4]
    return max(_mean(list(far.values())), _mean(near)), _mean([float(rows[q, j]) for q in range(length) if q != i])


def _mean(weights: list[float]) -> float:
    seen = [weight for weight in weights if weight > 0]
    return sum(seen) / max(1, len(seen))


def link(groups: Groups, numbers: Drawn) -> None:
    who(groups, numbers)
    told = told_of(groups, numbers)
    leaves_sinks_out(groups, numbers, [own for own, _ in told])
    for own, says in told:
        held = [each.layer for each in own.attends]
        assert bool(groups["held"]) == (held != list(range(len(numbers.weights[own.text]))))
        beyond = {}
        for layer in held:
            for head, rows in enumerate(numbers.weights[own.text][layer].double()):
                for key in numbers.different(own):
                    given = [others_give(rows, i, key) for i in own.tokens]
                    nats = [
                        float(rows[i, key] * (rows[i, key] / max(*other, 1 / int((rows[i] > 0).sum()))).log())
                        if rows[i, key] > 0 else 0.0
                        for i, other in zip(own.tokens, given, strict=True)
                    ]  # fmt: skip
                    weight = float(rows[own.tokens, key].mean())
                    expected = [sum(each) / len(given) for each in zip(*given, strict=True)]
                    beyond[layer, head, key] = sum(nats) / len(nats), weight, max(expected)
        most = max((each[0] for each in beyond.values()), default=0.0)
        match = re.fullmatch(
            rf"{TOKEN} (?P<weight>[<\d.]+) \(others (?P<others>[<\d.]+)\) in layer (?P<layer>\d+), head (?P<head>\d+)",
            says,
        )
        if match is None:
            assert says == "none"
            assert most <= 1e-9
            continue
        own_nats, weight, expected = beyond[int(match["layer"]), int(match["head"]), token_of(match, numbers, own)]
        assert own_nats >= most - 1e-9 > 0
        shows(match["weight"], weight)
        shows(match["others"], expected)


def brought(groups: Groups, numbers: Drawn) -> None:
    told = told_of(groups, numbers)
    leaves_sinks_out(groups, numbers, [own for own, _ in told])
    for own, says in told:
        (updates,) = [each.updates for each in numbers.summary.layer_updates if each.occurrence == own.label]
        others = numbers.others(own)
        shares = {
            (step.layer, each.token): each.share for step in updates for each in step.attention.top
            if each.token in others
        }  # fmt: skip
        most = max(shares.values(), default=0.0)
        pattern = r", (?P<share>\d+%)(?P<pull> \(others pull the other way\))? in layer (?P<layer>\d+)"
        match = re.fullmatch(rf"(?:another )?{TOKEN}{pattern}", says)
        if match is None:
            assert says == "none has 2%"
            assert most < 0.02
            continue
        shows(match["share"], most)
        assert (match["pull"] is not None) == (round(most, 2) > 1)
        assert shares[int(match["layer"]), token_of(match, numbers, own)] == most


def same(groups: Groups, numbers: Drawn) -> None:
    seen = numbers.summary.occurrences
    assert groups["every"] == ("Both" if len(seen) == 2 else f"All {len(seen)}")
    assert len({tuple(numbers.tokens(own)[n].text for n in own.tokens) for own in seen}) == 1
    enters = [own.hidden_states[0] for own in seen]
    if groups["vector"]:
        assert all(each == pytest.approx(enters[0], rel=1e-5) for each in enters)
    elif groups["cosine"]:
        least = min(pair.hidden_states[0] for pair in numbers.summary.pairs)
        shows(groups["cosine"], least)
        assert least < 1
        assert bool(groups["positions"]) == (len({tuple(own.tokens) for own in seen}) > 1)
    else:
        assert None in enters


def differ(groups: Groups, numbers: Drawn) -> None:
    pairs, seen = numbers.summary.pairs, numbers.summary.occurrences
    assert len({tuple(numbers.tokens(own)[n].text for n in own.tokens) for own in seen}) > 1
    shows(groups["cosine"], min(pair.token_embeddings for pair in pairs))
    assert groups["a"] is not None or len(pairs) == 1
    assert groups["a"] is None or min(pairs, key=lambda pair: pair.token_embeddings).a == groups["a"]


def pieces(groups: Groups, numbers: Drawn) -> None:
    (own,) = numbers.summary.occurrences
    tokens = numbers.tokens(own)
    if groups["place"]:
        assert own.tokens == [int(groups["place"])]
        assert len(tokens) == int(groups["size"])
    else:
        assert groups["pieces"].split() == [tokens[n].text for n in own.tokens]
        assert int(groups["count"]) == len(own.tokens)


def end(groups: Groups, numbers: Drawn) -> None:
    ends = {(pair.a, pair.b): pair.hidden_states[-1] for pair in numbers.summary.pairs}
    if not ends:
        (own,) = numbers.summary.occurrences
        shows(groups["alone"], cosine(own.hidden_states[0], own.hidden_states[-1]))
    elif len(ends) == 1:
        shows(groups["cosine"], *ends.values())
        states = numbers.summary.pairs[0].hidden_states
        if groups["began"]:
            shows(groups["began"], states[0])
            assert states[-1] - states[0] >= 0.01
        else:
            assert states[0] is None or states[-1] - states[0] < 0.01
        falls = {
            n: states[n] - states[n + 1]
            for n in range(len(states) - 1)
            if states[n] is not None and states[n + 1] is not None
        }
        assert bool(groups["held"]) == (len(falls) < len(states) - 1)
        if groups["layer"] is None:
            assert max(falls.values()) < 0.01
            return
        layer = int(groups["layer"])
        assert falls[layer] == max(falls.values()) >= 0.01
        shows(groups["before"], states[layer])
        shows(groups["after"], states[layer + 1])
    elif groups["about"]:
        for value in ends.values():
            shows(groups["about"], value)
    else:
        for a, b, value, most in ("a", "b", "low", min), ("c", "d", "high", max):
            assert ends[groups[a], groups[b]] == most(ends.values())
            shows(groups[value], most(ends.values()))


def says(groups: Groups, numbers: Drawn) -> None:
    first = numbers.summary.predictions[0]
    own = numbers.summary.occurrences[0]
    assert token_of(groups, numbers, own) == first.token == own.tokens[-1]
    best = max(first.candidates, key=lambda each: each.probability)
    assert groups["said"] == best.text
    shows(groups["probability"], best.probability)
    assert groups["where"] in (None, str(own.text + 1))


SEE = [
    Template("same", r"(?P<every>Both|All \d) “bank” start as the same (?:(?P<vector>vector)|learned embedding"
        r"(?:; (?:(?P<positions>their positions set them apart before layer 0)|they enter layer 0 apart) \(cosine "
        r"(?P<cosine>[−\d.]+)\))?)\.", same),
    Template("differ", r"The learned embeddings of “bank” differ, for its tokens do: cosine (?P<cosine>[−\d.]+)"
        r"(?: between (?P<a>\d[ab]?) and (?P<b>\d[ab]?), the least)?\.", differ),
    Template("pieces", r"“bank” is (?:one token, number (?P<place>\d+) of (?P<size>\d+), counted from 0|"
        r"read as (?P<count>\d) tokens: (?P<pieces>.+))\.", pieces),
    Template("row", r"What (?P<who>“.+?”) looks at most in layer (?P<layer>\d+) \(mean of its heads\)" + EACH, row),
    Template("no word", r"There is no other word that (?P<who>“.+?”) could look at\.", alone),
    Template("link", r"What (?P<who>“.+?”) singles out most(?P<sinks> \(sinks aside\))?"
        r"(?P<held> in the layers held)?" + EACH, link),
    Template("brought", r"The other word(?P<sinks> \(sinks aside\))? with the largest share in a layer's step, by "
        r"attention" + EACH, brought),
    Template("end", r"After layer 2 its vector is at cosine (?P<alone>[−\d.]+) to the one that entered layer 0\.", end),
    Template("two ends", r"They end at cosine (?P<cosine>[−\d.]+) after layer 2"
        r"(?:, nearer than they began \((?P<began>[−\d.]+)\))?(?:: |; )(?P<held>of the layers held, )?"
        r"(?:no layer parts them by 0\.01|layer (?P<layer>\d) parts them most \((?P<before>[−\d.]+) → "
        r"(?P<after>[−\d.]+)\))\.", end),
    Template("ends", r"After layer 2 any two of them are about as alike \(cosine (?P<about>[−\d.]+)\)\.|"
        r"After layer 2, (?P<a>\w+) and (?P<b>\w+) are least alike \(cosine (?P<low>[−\d.]+)\), (?P<c>\w+) "
        r"and (?P<d>\w+) most \((?P<high>[−\d.]+)\)\.", end),
    Template("says", rf"After {TOKEN}(?: in text (?P<where>\d))? the model would say “(?P<said>.+)” "
        r"\((?P<probability>[\d.]+)\)\.", says),
]  # fmt: skip


def test_every_sentence_about_a_word_is_true_of_whole_rows() -> None:
    spoke: Counter[str] = Counter()
    for seed in range(DRAWN):
        numbers = drawn(seed)
        spoke += hold(findings(numbers.summary), numbers, SEE)
    assert set(spoke) == {each.name for each in SEE}, spoke
