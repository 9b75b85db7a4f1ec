"""Sentences about translations: their names and weights are those of whole rows of cross-attention."""

import random
import re
from collections.abc import Iterator

import pytest
import torch

from regard.explain.texts.summary import Summary, Target
from regard.explain.weights.alignment import Aligned, Alignment
from regard.explain.weights.attended import attended
from regard.explain.weights.sinks import Sink
from regard.questions.see.alignment import alignment_tables
from regard.questions.translate import Translation
from regard.text.tokens import Token
from regard.text.words import spelling, wordlike, words
from tests.said.reading import names_in, numbers_in, plain_and_few, reads
from tests.support import in_text

SOURCE = ("a", "river", "bank", "grass+y", "near", "the", ".", ",", "and", "water+s")
TARGET = ("une", "rive", "banque", "herbe+use", "pr+ès", "la", ".", "'", "et", "eaux")


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
    written, read = (attended(weights[layer], source, layer, None, 5, sinks) for layer in (1, 0))
    rows = [Aligned(n, token.text, written[n - 1] if n else None, read[n]) for n, token in enumerate(target)]
    found = [Sink(n, source[n].text, 0.5, 1.0) for n in sinks]
    return Alignment(number, 1, 0, draw.uniform(-0.2, 1), None, rows, [0, 1], weights.tolist(), found)


def side(tokens: list[list[Token]], target: Target | None = None) -> Summary:
    labels = ["1", "2", "3"][: len(tokens)]
    return Summary(
        word=None, top=5, layers=[], labels=labels, windows=[], texts=[""] * len(tokens), tokens=tokens, sinks=[[]],
        occurrences=[], pairs=[], references=[], highlights=[], massive=None, layer_updates=[], predictions=[],
        logit_lenses=[], statuses=[], reference_statuses=[], target=target,
    )  # fmt: skip


def translation(seed: int) -> Summary:
    draw = random.Random(seed)
    count = draw.choice([1, 1, 2, 2, 3])
    sources = [tokens_of(SOURCE, draw.randint(1, 7), draw) for _ in range(count)]
    if draw.random() < 0.5:  # texts of the same words, which may become others
        sources = [sources[0]] * count
    targets = [[Token(0, "<s>", 0, 0, None, True), *tokens_of(TARGET, draw.randint(1, 7), draw)] for _ in range(count)]
    found = [alignment(n, a, b, draw) for n, (a, b) in enumerate(zip(sources, targets, strict=True))]
    return side(sources, Target(side(targets), [True] * count, found, [], []))


def links(summary: Summary, text: int) -> list[tuple[int, int, float]]:
    """Each target word's token, the source word's token with its largest weight, and this weight, from whole rows."""
    assert summary.target is not None
    each, source = summary.target.alignments[text], summary.tokens[text]
    target = summary.target.summary.tokens[text]
    own = [j for j, token in enumerate(source) if not token.special and j not in [sink.token for sink in each.sinks]]
    rows = {i: each.weights[1][i - 1] for i in range(1, len(target)) if not target[i].special and own}
    best = {i: max(own, key=row.__getitem__) for i, row in rows.items()}
    wordy = [(i, j, rows[i][j]) for i, j in best.items() if word_of(target, i) and word_of(source, j)]
    return sorted(wordy, key=lambda link: -link[2])


def word_of(tokens: list[Token], n: int) -> str:
    name = spelling(tokens, next(word for word in words(tokens) if n in word))
    return name if wordlike(name) else ""


def test_every_sentence_about_random_translations_is_true() -> None:
    kinds = {kind for seed in range(150) for kind in true_sentences(translation(seed))}
    assert kinds == {"different", "links", "changes", "left", "unclear"}


def true_sentences(summary: Summary) -> Iterator[str]:
    """Assert that each sentence is true, and say which kind it is."""
    assert summary.target is not None
    targets, said = summary.target.summary.tokens, Translation(summary).findings()
    plain_and_few(said)
    for sentence in said:
        text = re.match(r"In text (\d), ", sentence)
        n, body, names = int(text[1]) - 1 if text else 0, sentence[text.end() if text else 0 :], names_in(sentence)
        every, source, target = links(summary, n), summary.tokens[n], targets[n]
        clear = [link for link in every if link[2] >= 0.3]
        pairs = [(a, b) for a in clear for b in clear if a[0] < b[0] and a[1] > b[1]]
        if "becomes" in sentence:
            for m, weight in enumerate(number for number in numbers_in(sentence) if "." in number):
                mine = [link for link in links(summary, m) if word_of(summary.tokens[m], link[1]) == names[0]]
                assert targets[m][mine[0][0]].text in names
                assert reads(weight, mine[0][2])
            yield "different"
        elif re.search(r"riting “.+ most to “.+\(", sentence):
            weights = [number for number in numbers_in(body) if "." in number]  # without the numbers of tokens
            assert "becomes" in said[0] or reads(weights[0], every[0][2])
            rows = summary.target.alignments[n].weights[1]
            for weight in weights:
                mine = [a for a in clear if reads(weight, a[2]) and {target[a[0]].text, source[a[1]].text} <= {*names}]
                assert mine
                assert "part from" in sentence or any(max(rows[i - 1]) == pytest.approx(w) for i, _, w in mine)
            yield "links"
        elif "order changes" in sentence:
            assert any({target[i].text, target[k].text} <= {*names} for (i, *_), (k, *_) in pairs)
            yield "changes"
        else:
            assert not {*names} & {word_of(source, j) for _, j, _ in every}
            assert names or not clear
            yield "left" if names else "unclear"


def test_a_table_that_is_cut_has_the_largest_weights() -> None:
    """Of words, because other tokens have no alignment that a reader looks for."""
    for summary in map(translation, range(60)):
        assert summary.target is not None
        for n, label in enumerate(summary.labels[:2]):
            tables = {table.name: table for table in alignment_tables(summary)}
            if f"Clearest links, text {label}" not in tables:
                assert tables[f"Alignment, text {label}"].screen
                continue
            cut, whole = (tables[f"{name}, text {label}"] for name in ("Clearest links", "Alignment"))
            assert not whole.screen
            assert [row for row in whole.rows if row in cut.rows] == cut.rows
            weights = [weight for _, _, weight in links(summary, n)]
            assert sorted([row[2] for row in cut.rows], reverse=True) == pytest.approx(weights[: len(cut.rows)])
