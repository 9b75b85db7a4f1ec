"""The sentences of `attribute` name the components, heads and tokens that contribute most, of random splits."""

import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.capture.gradients.score_path import SideParts, Writer
from regard.questions.attribution.direct import Attribution
from regard.questions.attribution.gradients import TokenAttribution
from regard.text.tokens import Token
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows
from tests.support import in_text

TOKENS = tuple(in_text([
    Token(1, "river", 0, 5, 0, False), Token(2, "s", 5, 6, 0, False), Token(3, " run", 6, 10, 1, False),
    Token(4, " past", 10, 15, 2, False), Token(5, " the", 15, 19, 3, False), Token(6, " bank", 19, 24, 4, False),
]))  # fmt: skip
NUMBERS = [float(n) for n in range(6)]  # of layers, heads and tokens, in their names


def size(draw: random.Random) -> float:
    return draw.choice((1.0, 0.1, 0.001)) * draw.uniform(-1, 1) - draw.choice((0, 0, 1))


def named(sentence: str, amount: float, name: str) -> None:
    """Assert that a sentence has this name, and this number as one of those that are in no name."""
    words = sentence.replace("feed-forward block", "feed-forward").replace("The ", "the ")
    assert name in words, sentence
    printed = [each for each in numbers_in(sentence) if each[0] in "+−"]
    assert printed, sentence
    shows(min(printed, key=lambda each: abs(float(each.replace("−", "-")) - amount)), amount)


def most_and_least(sentences: list[str], parts: dict[str, float]) -> None:
    """Assert that sentences name the largest contribution, and the largest reduction, unless they are small."""
    text, largest = " ".join(sentences), max(map(abs, parts.values()))
    ordered = sorted(parts, key=lambda name: parts[name])
    for name in (ordered[0], ordered[-1]):
        if abs(parts[name]) >= 0.051 * largest and (name == ordered[-1]) == (parts[name] > 0):
            named(text, parts[name], name)
    for name in ordered[1:-1]:
        assert name not in text, text


def components(result: Attribution) -> dict[str, float]:
    """The contribution of each writer, by its name in a sentence."""
    found: dict[str, float] = {}
    for each, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        kind = {"attention": f"head {each.head}", "bias": "biases"}.get(each.kind, each.kind)
        name = "the token embedding" if each.kind == "token" else f"the {kind} of layer {each.layer}"
        name = f"layer {each.layer}, {kind}" if each.kind == "attention" else name
        name = "the biases before layer 0" if each.kind == "bias" and each.layer is None else name
        found[name] = found.get(name, 0.0) + value
    return found


def direct(draw: random.Random) -> Attribution:
    """A split into embeddings, heads by source token, feed-forward layers and biases, some left out."""
    writers = [Writer("token"), Writer("bias"), Writer("bias", 0), *(Writer("feed-forward", n) for n in range(2))]
    heads = [(layer, head) for layer in range(2) for head in range(3)]
    writers += [Writer("attention", *head, n) for head in heads for n in range(len(TOKENS))]
    kept = [writer for writer in writers if draw.random() < 0.7] or writers[:1]
    vectors = torch.tensor([[size(draw)] for _ in kept], dtype=torch.float64)
    parts = SideParts(tuple(kept), vectors, vectors.sum(0), (5,))
    return Attribution("logit of “x” at “bank”", float(vectors.sum()), 1e-7, parts, {None: TOKENS})


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_component_head_and_source_token_are_named(seed: int) -> None:
    result = direct(random.Random(seed))
    shown_with_its_numbers(result, NUMBERS)
    first, *rest = result.findings()
    parts = components(result)
    top = max(parts, key=lambda name: parts[name])
    heads = {name: value for name, value in parts.items() if ", head " in name}
    if parts[top] > 0.051 * max(map(abs, parts.values())):
        named(first, parts[top], top)
    if top not in heads and len(heads) > 1:
        most_and_least([sentence for sentence in rest if "Among heads" in sentence], heads)
    sources: dict[str, float] = {}
    for each, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        if each.source is not None:
            name = f"“{TOKENS[each.source].text.strip()}” ({each.source})"
            sources[name] = sources.get(name, 0.0) + value
    most_and_least([sentence for sentence in rest if "attention to" in sentence], sources)


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_token_or_word_is_named(seed: int) -> None:
    draw = random.Random(seed)
    scores = torch.tensor([size(draw) for _ in TOKENS], dtype=torch.float64)
    baseline = draw.choice((None, 0.3, -0.2))
    method: Any = "gradient x input" if baseline is None else "integrated gradients"
    value = float(scores.sum()) + (baseline or 0.0) + draw.choice((1e-4, 0.5))
    gap = None if baseline is None else abs(float(scores.sum()) - (value - baseline))
    result = TokenAttribution(method, "logit of “x”", value, baseline, gap, 32, scores, scores, TOKENS, (len(TOKENS),))
    for unit in ("token", "word"):
        result = replace(result, unit=unit)
        also = [*NUMBERS, float(scores.sum()), value - (baseline or 0.0), *(score for _, score in result.words())]
        shown_with_its_numbers(result, also)
        most_and_least(result.findings(), dict(result.by(result.unit)))
        warned = "trust" in result.findings()[0]
        assert warned == (gap is not None and gap > 0.05 * abs(value - (baseline or 0.0)))


def test_scores_of_zero_name_no_token() -> None:
    zero = torch.zeros(6, dtype=torch.float64)
    result = TokenAttribution("gradient x input", "logit", 1.0, None, None, 0, zero, zero, TOKENS, (6,))
    assert not names_in(" ".join(result.findings()))
    assert len(result.findings()) == 1
