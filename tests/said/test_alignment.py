"""Sentences about a translation, held against whole rows of cross-attention: special tokens and sinks included."""

import random
import re
from collections import Counter
from dataclasses import fields
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.explain.texts.summary import Summary, Target
from regard.explain.weights.alignment import Aligned, Alignment
from regard.explain.weights.attended import attended
from regard.explain.weights.sinks import Sink
from regard.explain.wording import named
from regard.questions.alignment.sentences import alignment_findings, told_first
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, words
from tests.said.templates import Groups, Template, hold, reads, shows
from tests.support import in_text

SOURCE = ("a", "river", "bank", "grass+y", "near", "the", ".", ",", "and", "water+s")
TARGET = ("une", "rive", "banque", "herbe+use", "pr+ès", "la", ".", "'", "et", "eaux")
NAME = r"(“[^”]+”(?: of “[^”]+”)?)"
ASIDE = r"(?P<aside>, special tokens and sinks aside)?"
WHERE = r"(?:[Ii]n text (?P<text>\d+) )?"


def tokens_of(pool: tuple[str, ...], count: int, draw: random.Random) -> list[Token]:
    """So many words, some of two pieces, and a special token at the end."""
    made: list[Token] = []
    place = 0
    for word in draw.choices(pool, k=count):
        for n, piece in enumerate(word.split("+")):
            text = f"##{piece}" if n else piece
            made.append(Token(len(made), text, place, place + len(piece), None, False))
            place += len(piece)
        place += 1
    return in_text([*made, Token(len(made), "</s>", place, place, None, True)])


def alignment(number: int, source: list[Token], target: list[Token], draw: random.Random) -> Alignment:
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    scale = draw.choice([0.5, 2.0, 4.0])
    weights = (scale * torch.randn(2, len(target), len(source), generator=generator)).softmax(-1)
    own = [n for n, token in enumerate(source) if not token.special]
    sinks = draw.sample(own, 1) if draw.random() < 0.3 and len(own) > 1 else []
    read = draw.randrange(2)
    rows = [
        Aligned(
            n,
            token.text,
            attended(weights[1, n - 1 : n], source, 1, None, 5, sinks)[0] if n else None,
            attended(weights[read, n : n + 1], source, read, None, 5, sinks)[0],
        )
        for n, token in enumerate(target)
    ]
    found = [Sink(n, source[n].text, 0.5, 1.0) for n in sinks]
    return Alignment(number, 1, read, draw.uniform(-0.2, 1), None, rows, [0, 1], weights.tolist(), found)


def side(tokens: list[list[Token]], target: Target | None = None) -> Summary:
    labels = [str(n + 1) for n in range(len(tokens))]
    given = {"word": None, "top": 5, "labels": labels, "tokens": tokens, "movement": None, "target": target}
    none: dict[str, Any] = {each.name: [] for each in fields(Summary) if each.name not in {*given, "static", "control"}}
    return Summary(**none, **given)


def translation(seed: int) -> Summary:
    draw = random.Random(seed)
    count = draw.choice([1, 1, 2, 2, 3])
    sources = [tokens_of(SOURCE, draw.randint(1, 7), draw) for _ in range(count)]
    if draw.random() < 0.5:  # texts of the same words, which may become others
        sources = [sources[0]] * count
    targets = [[Token(0, "<s>", 0, 0, None, True), *tokens_of(TARGET, draw.randint(1, 7), draw)] for _ in range(count)]
    found = [alignment(n, a, b, draw) for n, (a, b) in enumerate(zip(sources, targets, strict=True))]
    return side(sources, Target(side(targets), [True] * count, found, [], []))


def letters(text: str) -> bool:
    return any(map(str.isalnum, text))


def of_text(numbers: Summary, label: str | None) -> SimpleNamespace:
    """The whole rows of one text: rows[n] writes target token n."""
    assert numbers.target is not None
    n = int(label) - 1 if label else 0
    assert label or len(numbers.tokens) == 1, "which of several texts?"
    each = numbers.target.alignments[n]
    source, target = numbers.tokens[n], numbers.target.summary.tokens[n]
    rows = {i: each.weights[each.layers.index(each.written_layer)][i - 1] for i in range(1, len(target))}
    rows = {i: row for i, row in rows.items() if not target[i].special}
    own = {j for j, token in enumerate(source) if not token.special} - {sink.token for sink in each.sinks}
    return SimpleNamespace(
        each=each, source=source, target=target, rows=rows, own=own,
        names=[named(target, i) for i in range(len(target))], keys=[named(source, j) for j in range(len(source))],
    )  # fmt: skip


def links(text: SimpleNamespace, *, aside: bool = True) -> list[tuple[int, int, float]]:
    """(target, source, weight) of each row's largest weight, of the whole row or special tokens and sinks aside."""
    among = text.own if aside else range(len(text.source))
    return [(i, j, row[j]) for i, row in text.rows.items() for j in [max(among, key=row.__getitem__)]] if among else []


def comes(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    every = links(text, aside=bool(groups["aside"]))
    told = re.findall(rf"{NAME} comes from {NAME} \((\d\.\d+)\)", groups["links"] or "")
    assert 1 <= len(told) <= 3
    best = sorted((w for i, j, w in every if letters(text.target[i].text) and j in text.own), reverse=True)
    for out, of, weight in told:
        mine = [w for i, j, w in every if text.names[i] == out and text.keys[j] == of]
        assert mine, f"{out} gives another than {of} most"
        assert any(reads(weight, w) and w >= 0.3 for w in mine), (weight, mine)
    shows(told[0][2], best[0])
    assert f"layer {text.each.written_layer}" in (groups["layer"] or "")


def unclear(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    for i, _, weight in links(text, aside=bool(groups["aside"])):
        assert weight < 0.3 or not letters(text.target[i].text)


def clear(text: SimpleNamespace) -> list[tuple[int, int, float]]:
    return [(i, j, w) for i, j, w in links(text) if w >= 0.3]


def crossing(found: list[tuple[int, int, float]]) -> list[Any]:
    return [(a, b) for a, b in combinations(found, 2) if a[1] > b[1]]


def kept(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    every = clear(text)
    between = [link for link in every if letters(text.target[link[0]].text) and letters(text.source[link[1]].text)]
    shows(groups["count"], len(between))
    assert not crossing(between)
    across = crossing(every)
    assert bool(across) == bool(groups["later"]), "a clear link crosses another, and is not named"
    if across:
        assert any(
            (text.names[a[0]], text.keys[a[1]]) == (groups["early"], groups["after"])
            and (text.names[b[0]], text.keys[b[1]]) == (groups["later"], groups["before"])
            and reads(groups["one"], a[2])
            and reads(groups["two"], b[2])
            for a, b in across
        )


def changes(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    named_pairs = [
        (text.names[a[0]], text.names[b[0]], text.keys[a[1]], text.keys[b[1]]) for a, b in crossing(clear(text))
    ]
    assert (groups["early"], groups["later"], groups["after"], groups["before"]) in named_pairs


def least(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    rows = [(w, i) for i, _, w in links(text) if letters(text.target[i].text)]
    weight, i = min(rows)
    assert text.names[i] == groups["name"], f"{text.names[i]} has {weight}"
    shows(groups["weight"], weight)
    taken = 1 - sum(text.rows[i][j] for j in text.own)
    assert (taken > 0.5) == bool(groups["half"])


def left(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    whole = {j for _, j, _ in links(text, aside=False)}
    told = (groups["names"] or "").split(", ")
    every = [word for word in words(text.source) if letters(spelling(text.source, word)) and set(word) <= text.own]
    not_taken = [word for word in every if not set(word) & {j for _, j, _ in links(text)}]
    assert len(told) + int(groups["more"] or 0) == len(not_taken)
    for name in told:
        mine = [word for word in every if f"“{spelling(text.source, word)}”" == name]
        assert any(not set(word) & whole for word in mine), f"{name} is looked at most"


def taken(groups: Groups, numbers: Summary) -> None:
    text = of_text(numbers, groups["text"])
    most = {j for _, j, _ in links(text, aside=bool(groups["aside"]))}
    for word in words(text.source):
        sink = not set(word) <= text.own and groups["aside"]
        if letters(spelling(text.source, word)) and not text.source[word[0]].special and not sink:
            assert set(word) & most, f"nothing looks most at {spelling(text.source, word)}"


def agree(groups: Groups, numbers: Summary) -> None:
    assert numbers.target is not None
    found = [
        each for each in numbers.target.alignments
        if (each.written_layer, each.read_layer) == (int(groups["written"] or 0), int(groups["read"] or 0))
        and reads(groups["value"], each.agreement)
    ]  # fmt: skip
    assert found
    value = found[0].agreement
    assert groups["how"] == ("well" if value >= 0.5 else "somewhat" if value >= 0.2 else "hardly")


def becomes(groups: Groups, numbers: Summary) -> None:
    for says in (groups["says"] or "").split("; "):
        match = re.fullmatch(r"“(?P<word>[^”]+)” becomes (?P<ways>.+)", says)
        assert match
        ways = re.findall(rf"{NAME} in text (\d) \((\d\.\d+)\)", match["ways"])
        assert [label for _, label, _ in ways] == ["1", "2"]
        assert ways[0][0] != ways[1][0]
        for out, label, weight in ways:
            text = of_text(numbers, label)
            (own,) = [w for w in words(text.source) if spelling(text.source, w).casefold() == match["word"].casefold()]
            most, i = max((text.rows[i][j], i) for i in text.rows if letters(text.target[i].text) for j in own)
            assert text.names[i] == out, f"{text.names[i]} looks at it more"
            assert most >= 0.3
            assert most >= max(text.rows[i][j] for j in text.own), f"{out} looks at another word more"
            shows(weight, most)


def more(groups: Groups, numbers: Summary) -> None:
    shows(groups["count"], len(numbers.tokens) - 2)


TEMPLATES = [
    Template("becomes", r"(?P<says>“.+ becomes .+): of each target's words the one that looks at it most\.", becomes),
    Template(
        "comes", WHERE + r"(?P<links>“.+ comes from .+): by the weights of the cross-attention of (?P<layer>layer \d), "
        rf"as each is written{ASIDE}\.", comes,
    ),
    Template(
        "unclear", WHERE + r"[Nn]o target word has a clear source: none looks at one with 0\.3 or more"
        rf"{ASIDE} \(cross-attention of layer \d\)\.", unclear,
    ),
    Template(
        "kept", WHERE + r"[Tt]he order of words is kept: of (?P<count>\d+) links of 0\.3 or more none crosses another"
        r"(?:; of those with punctuation (?P<later>“.+) from (?P<before>“.+) \((?P<two>[\d.]+)\) crosses "
        r"(?P<early>“.+) from (?P<after>“.+) \((?P<one>[\d.]+)\))?\.", kept,
    ),
    Template(
        "changes", WHERE + r"[Tt]he order changes: (?P<early>“.+) stands before (?P<later>“.+), but comes from "
        r"(?P<after>“.+), which stands after (?P<before>“.+)\.", changes,
    ),
    Template(
        "least", WHERE + r"[Ll]east clear of the words is (?P<name>“.+): it looks at “[^”]+” \((?P<weight>[\d.]+)\)"
        r"(?: and “[^”]+” \([\d.]+\))?(?P<half>, and more than half goes to special tokens or sinks)?\.", least,
    ),
    Template(
        "left", WHERE + r"[Nn]o target token looks most at (?P<names>“.+”)(?: and (?P<more>\d+) more)?\.", left
    ),
    Template("taken", WHERE + rf"[Ee]very word of the text is what some target token looks at most{ASIDE}\.", taken),
    Template(
        "agree", r"Layer (?P<written>\d), as tokens are written, and layer (?P<read>\d), as they are read, agree "
        r"(?P<how>well|somewhat|hardly) \((?P<value>−?[\d.]+) of at most 1\)\.", agree,
    ),
    Template("more", r"(?P<count>\d+) more texts have tables of their own\.", more),
]  # fmt: skip


def test_every_sentence_about_random_translations_is_true() -> None:
    spoke: Counter[str] = Counter()
    for each in map(translation, range(150)):
        spoke += hold(alignment_findings(each), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_table_that_is_cut_has_the_telling_words_and_those_with_the_largest_weights(count: int) -> None:
    for seed in range(25):
        found = translation(seed)
        said = next((each for each in alignment_findings(found) if " becomes " in each), "").split("; ")[0]
        for label in found.labels[:2]:
            text = of_text(found, label)
            told = [each.token for each, _ in told_first(found, text.each, count)]
            assert told == sorted(told)
            if said:
                assert any(f"{text.names[i]} in text {label} " in said for i in told)
                continue
            weights = {i: w for i, _, w in links(text) if letters(text.target[i].text)}
            assert all(weights[i] <= weights.get(n, 0) for i in set(weights) - set(told) for n in told)
