"""Sentences about how a text was written, held against every probability and all attention that was paid."""

import random
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from regard.explain.logits.predictions import Candidate
from regard.questions.generate.answer import Generation, Written
from regard.questions.generate.sentences import writing_findings
from regard.questions.generate.writing import Writing, WrittenToken
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows
from tests.support import in_text


def answer(draw: random.Random) -> SimpleNamespace:
    """A prompt of some words and what was written after it, with what else was likely and where attention went."""
    given, written = draw.randint(1, 6), draw.choice([0, 1, 2, 5])
    names = [draw.choice([f"w{n}", f"w{n}", "."]) for n in range(given + written)]
    special = draw.random() < 0.5
    tokens = in_text(
        [Token(n, name, 4 * n, 4 * n + len(name), None, special and n == 0) for n, name in enumerate(names)]
    )
    made = []
    for n in range(given, given + written):
        chances = sorted((draw.random() ** 3 for _ in range(5)), reverse=True)
        chances = [each / sum(chances) for each in chances]
        rank = draw.choice([0, 0, 1, 3])
        ids = [n if place == rank else 100 + place for place in range(5)]
        likeliest = [Candidate(ids[place], f"x{ids[place]}", chances[place]) for place in range(3)]
        made.append(WrittenToken(n, names[n], chances[rank], rank, likeliest))
    received = [draw.random() ** 2 for _ in names]
    received = [each / sum(received) for each in received]
    sinks = {n for n in (0, 2) if n < len(names) and not tokens[n].special and draw.random() < 0.5}
    parts = {
        "special": sum(received[:1], 0.0) if special else 0.0,
        "sinks": sum((received[n] for n in sinks), 0.0),
        "prompt": sum((received[n] for n in range(given) if n not in sinks and not tokens[n].special), 0.0),
        "own": sum(received[given:], 0.0),
    }
    ended = draw.choice(["end", "stop", "length"])
    found = Writing(given, ended, made, received=received, sink_tokens=sorted(sinks), **parts)
    return SimpleNamespace(found=found, tokens=tokens, **parts)


def nothing(groups: Groups, numbers: Any) -> None:
    assert not numbers.found.tokens
    shows(groups["given"], numbers.found.given)


def length(groups: Groups, numbers: Any) -> None:
    shows(groups["count"], len(numbers.found.tokens))
    shows(groups["given"], numbers.found.given)


def sure(groups: Groups, numbers: Any) -> None:
    every = numbers.found.tokens
    shows(groups["sure"], sum(each.probability > 0.5 for each in every))
    shows(groups["count"], len(every))
    shows(groups["not"] or "0", sum(each.rank > 0 for each in every))


def least(groups: Groups, numbers: Any) -> None:
    every = numbers.found.tokens
    least = min(every, key=lambda each: each.probability)
    assert groups["name"] == least.text
    shows(groups["chance"], least.probability)
    assert groups["after"] in (None, numbers.tokens[least.token - 1].text)
    others = [each for each in least.likeliest if each.id != least.token]
    assert (groups["how"] == "likelier was") == (least.rank > 0)
    assert groups["other"] == others[0].text
    shows(groups["then"], max(each.probability for each in others))


def parts(groups: Groups, numbers: Any) -> None:
    told = re.findall(r"(\d+%) to ([\w' ]+?)(?=, | and |$)", groups["parts"] or "")
    by_name = {name: part for part, name in told}
    prompt = "the rest of the prompt" if numbers.special + numbers.sinks >= 0.01 else "the prompt"
    every = {"special tokens": numbers.special, "attention sinks": numbers.sinks, prompt: numbers.prompt,
             "what it had written": numbers.own}  # fmt: skip
    for name, value in every.items():
        assert (name in by_name) == (value >= 0.01), name
        if name in by_name:
            shows(by_name[name], value)


def looked(groups: Groups, numbers: Any) -> None:
    received, given = numbers.found.received, numbers.found.given
    words = [n for n in range(given) if numbers.tokens[n].text != "." and not numbers.tokens[n].special]
    sinks = [n for n in words if n in numbers.found.sink_tokens]
    assert groups["aside"] == ("attention sinks" if len(sinks) > 1 else "the attention sink" if sinks else None)
    words = [n for n in words if n not in sinks]
    best = max(words, key=lambda n: received[n])
    assert numbers.tokens[best].text == groups["name"], f"{numbers.tokens[best].text} has {received[best]}"
    shows(groups["weight"], received[best])


N = r"[\d.]+"
ENDED = r"and (?:ended the text itself|stopped at a string that it was to stop at|stopped at the \d+ tokens? asked for)"
TEMPLATES = [
    Template("nothing", rf"It wrote nothing after the (?P<given>\d+) tokens? given {ENDED}\.", nothing),
    Template("length", rf"It wrote (?P<count>\d+) tokens? after the (?P<given>\d+) given, {ENDED}\.", length),
    Template(
        "sure", r"It gave (?P<sure>\d+) of the (?P<count>\d+) a probability above 0\.5; (?:(?P<not>\d+) "
        r"(?:is|are) not what "
        r"it found likeliest|(?:each|it) is the one it found likeliest)\.", sure,
    ),
    Template(
        "least", rf"Least likely was “(?P<name>[^”]+)” \((?P<chance>{N})(?:, after “(?P<after>[^”]+)”)?\): "
        rf"(?P<how>likelier was|next came) “(?P<other>\w+)” \((?P<then>{N})\)\.", least,
    ),
    Template(
        "parts", r"Meanwhile its attention went (?P<parts>.+) \(mean of all layers and heads\)\.", parts
    ),
    Template(
        "looked", r"Of the prompt's words(?:, (?P<aside>the attention sink|attention sinks) aside,)? it looked most "
        rf"at “(?P<name>[^”]+)” \((?P<weight>{N})\)\.", looked,
    ),
]  # fmt: skip


def steered(draw: random.Random) -> SimpleNamespace:
    """A plain and a steered text after one prompt, alike for some tokens."""
    one = answer(draw)
    written = list(one.found.tokens)
    tokens, at = list(one.tokens), draw.randint(0, len(written))
    how = draw.choice(["same", "ends", "other"])
    if how == "ends":
        written, tokens = written[:at], tokens[: one.found.given + at]
    if how == "other" and at < len(written):
        place = written[at].token
        tokens[place] = replace(tokens[place], id=1000, text="other")
        written[at] = replace(written[at], text="other", probability=draw.random())
    second = Written("", "", tokens, replace(one.found, tokens=written))
    return SimpleNamespace(found=Generation(Written("", "", one.tokens, one.found), second, "how"))


def ids(own: Written) -> list[int]:
    return [own.tokens[each.token].id for each in own.how.tokens]


def parting(groups: Groups, numbers: Any) -> None:
    plain, other = numbers.found.plain, numbers.found.steered
    at = int(groups["at"] or 0) - 1
    assert ids(plain)[:at] == ids(other)[:at]
    assert ids(plain)[at : at + 1] != ids(other)[at : at + 1]
    before = plain.tokens[plain.how.given + at - 1].text if at else None
    assert groups["after"] == before
    for own, name in ((plain, "plain"), (other, "steered")):
        ends = at >= len(own.how.tokens)
        assert bool(groups[f"{name}_ends"]) == ends
        if not ends:
            assert groups[name] == own.tokens[own.how.tokens[at].token].text
            shows(groups[f"{name}_chance"], own.how.tokens[at].probability)


def same(groups: Groups, numbers: Any) -> None:
    assert ids(numbers.found.plain) == ids(numbers.found.steered)


def of_each(groups: Groups, numbers: Any) -> None:
    own = numbers.found.plain if groups["name"] == "Plain" else numbers.found.steered
    said = f"{(groups['says'] or '')[:1].upper()}{(groups['says'] or '')[1:]}"
    assert sum(hold([said], SimpleNamespace(found=own.how, tokens=own.tokens), TEMPLATES).values()) == 1


def way(name: str) -> str:
    return rf"{name} (?:writes “(?P<{name}>[^”]+)” \((?P<{name}_chance>{N})\)|(?P<{name}_ends>ends))"


STEERED = [
    Template("same", r"Both texts are the same: steered, the model writes what it writes plain\.", same),
    Template(
        "parting", r"Both texts part at token (?P<at>\d+) of what is written(?:, after “(?P<after>[^”]+)”)?: "
        rf"{way('plain')} where {way('steered')}\.", parting,
    ),
    Template("each", r"(?P<name>Plain|Steered): (?P<says>.+)", of_each),
]  # fmt: skip


def test_every_sentence_about_random_steering_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(7)
    for _ in range(200):
        each = steered(draw)
        spoke += hold(each.found.findings(), each, STEERED)
    assert set(spoke) == {each.name for each in STEERED}


def test_every_sentence_about_random_writing_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(6)
    for _ in range(200):
        each = answer(draw)
        spoke += hold(writing_findings(each.found, each.tokens), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
