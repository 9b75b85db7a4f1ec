"""What made an outcome in sentences, of made-up numbers."""

from dataclasses import replace

import pytest
import torch

from regard.capture.interventions.call_ids import CallId
from regard.capture.score_path import SideParts, Writer
from regard.questions.attribution.direct import Attribution
from regard.questions.attribution.heads import HeadAttribution
from regard.questions.attribution.sentences import exactness_of_parts
from regard.questions.attribution.tokens import TokenAttribution
from regard.text.tokens import Token
from tests.support import in_text

TEXT = "rivers run"
TOKENS = tuple(in_text(
    [Token(1, "river", 0, 5, 0, False), Token(2, "s", 5, 6, 0, False), Token(3, " run", 6, 10, 1, False)]
))  # fmt: skip
WRITERS = (
    Writer("token"), Writer("attention", 0, 1, 0), Writer("attention", 0, 1, 1), Writer("attention", 1, 0, 2),
    Writer("feed-forward", 1),
)  # fmt: skip
VECTORS = torch.tensor([[0.5], [2.0], [1.0], [-1.5], [0.01]], dtype=torch.float64)
DIRECT = Attribution(
    "logit of “x” at “run”", 2.01, 2e-7, SideParts(WRITERS, VECTORS, VECTORS.sum(0), (2,)), {None: TOKENS}
)
SCORES = torch.tensor([2.0, 1.0, -0.5], dtype=torch.float64)
BY_TOKENS = TokenAttribution(
    "integrated gradients", "logit of “x”", 3.0, 0.5, 1e-3, 32, SCORES, SCORES.abs(), TOKENS, (3,)
)
BY_HEADS = HeadAttribution(
    "logit of “x”", 3.0, (CallId(None, 0), CallId(None, 1)),
    (torch.tensor([0.1, 2.0]).double(), torch.tensor([-1.0, 0.0]).double()),
    (
        torch.tensor([[0.1, 0.0, 0.0], [-1.0, 3.0, 0.0]]).double(),
        torch.tensor([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]]).double(),
    ),
    (TOKENS, TOKENS),
)  # fmt: skip


def test_what_was_written_directly() -> None:
    assert DIRECT.findings() == [
        "The logit of “x” at “run” is +2.01: the sum of what was written there directly.",
        "Of all 4 parts (embeddings, heads and feed-forward layers), layer 0, head 1 (+3.00) and token embedding "
        "(+0.50) brought most; layer 1, head 0 (−1.50) took most away.",
        "Of the 2 heads, layer 0, head 1 (+3.00) brought most; layer 1, head 0 (−1.50) took most away.",
        "Of all 3 source tokens, by attention over all heads and layers, “river” (0) (+2.00) and “s” (1) (+1.00) "
        "brought most; “run” (2) (−1.50) took most away.",
        "In all: attention +1.50, token embedding +0.50 and feed-forward layers +0.010.",
    ]
    by_word = replace(DIRECT, unit="word").findings()[3]
    assert by_word.startswith(
        "Of all 2 source words, by attention over all heads and layers, “rivers” (0) (+3.00) brought"
    )


def test_what_tokens_took_away_is_named_too() -> None:
    writers = tuple(Writer("attention", 0, 1, n) for n in range(3))
    vectors = torch.tensor([[-2.0], [-1.0], [0.5]], dtype=torch.float64)
    found = replace(DIRECT, parts=SideParts(writers, vectors, vectors.sum(0), (2,)), value=-2.5)
    assert (
        "Of all 3 source tokens, by attention over all heads and layers, “run” (2) (+0.50) brought most; “river” (0) "
        "(−2.00) and “s” (1) (−1.00) took most away."
    ) in found.findings()


def test_heads_are_not_said_twice() -> None:
    few = SideParts(WRITERS[1:4], VECTORS[1:4], VECTORS[1:4].sum(0), (2,))
    said = replace(DIRECT, parts=few, value=1.5).findings()
    assert ["heads" in each.split(",")[0] for each in said].count(True) == 1
    assert said[1].startswith("Of all 2 parts (heads), layer 0, head 1 (+3.00) brought most; ")


def test_what_came_across_is_of_the_encoder() -> None:
    writers = (Writer("attention", 0, 1, 2, "decoder", cross=True), Writer("attention", 0, 1, 0, "decoder"))
    parts = SideParts(writers, VECTORS[:2], VECTORS[:2].sum(0), (1,))
    both = {"encoder": TOKENS, "decoder": TOKENS}
    found = Attribution("logit", 2.5, 0.0, parts, both)  # type: ignore[arg-type]
    assert any(
        each.endswith("“river” (0) of the decoder (+2.00) and “run” (2) of the encoder (+0.50) brought most.")
        for each in found.findings()
    )


def test_what_tokens_brought() -> None:
    first, most, sums = replace(BY_TOKENS, unit="word").findings()
    assert first == "The logit of “x” is +3.00, and +0.50 where the baseline stands at every token."
    assert most == (
        "By integrated gradients, 32 steps, of all 2 words, “rivers” (0) (+3.00) brought most; “run” (2) (−0.50) took "
        "most away."
    )
    assert sums == "The scores sum to +2.50, where +2.50 is to be explained: a gap of 1.0e-03."
    wide, first, _ = replace(BY_TOKENS, gap=1.0).findings()  # said before any number that it is about
    assert wide.endswith("is to be explained: with 32 steps too far apart for single scores to be believed.")
    assert first.startswith("The logit of “x” is +3.00")
    plain = replace(BY_TOKENS, method="gradient x input", baseline=None, gap=None)
    assert plain.findings()[0] == "The logit of “x” is +3.00."
    assert "need not sum to the outcome" in plain.findings()[2]


def test_what_heads_brought() -> None:
    assert BY_HEADS.findings() == [
        "The logit of “x” is +3.00.",
        "Of all 4 heads, each beside an ablated one, to the first order, layer 0, head 1 (+2.00) and layer 0, head 0 "
        "(+0.10) brought most; layer 1, head 0 (−1.00) took most away.",
        "Layer 0, head 1, the furthest from zero, took most of its +2.00 from “s” (1): +3.00.",
        "One gradient estimates all of these; ablating a head measures what it does.",
    ]


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
def test_where_nothing_is_brought(scores: list[float]) -> None:
    said = replace(BY_TOKENS, scores=torch.tensor(scores, dtype=torch.float64)).findings()
    assert any("none brought anything; “river” (0) (−1.00) took most away" in each for each in said) == any(scores)


def test_little_that_was_brought_is_not_nothing() -> None:
    """Beside a large part that takes away, "none brought anything" was said of what brought 0.01."""
    said = replace(BY_TOKENS, scores=torch.tensor([-1.0, 0.0, 0.01], dtype=torch.float64)).findings()[1]
    assert said.endswith("“run” (2) (+0.010) brought most; “river” (0) (−1.00) took most away.")


def test_how_exact_it_is() -> None:
    assert "within 2.0e-07 of the sum of their absolute values" in exactness_of_parts(DIRECT)
    assert exactness_of_parts(DIRECT).endswith("without it other parts would change, ablate it to see")
    plain = replace(BY_TOKENS, method="gradient x input", baseline=None, gap=None)
    linear = "Gradient x input is exact where the outcome is linear in the learned embeddings, and only there."
    assert plain.exactness() == plain.page().status == [linear]
    assert BY_TOKENS.exactness() == []
