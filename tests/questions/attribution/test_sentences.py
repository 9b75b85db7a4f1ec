"""Sentences on special cases of contributions, of made-up numbers."""

from dataclasses import replace

import torch

from regard.capture.interventions.call_ids import CallId
from regard.capture.score_path import SideParts, Writer
from regard.questions.attribution.direct import Attribution
from regard.questions.attribution.heads import HeadAttribution
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


def test_source_tokens_of_a_word_are_one() -> None:
    assert "“rivers” (0) contributes most (+3.00)" in replace(DIRECT, unit="word").findings()[2]


def test_a_head_that_contributes_most_is_named_once() -> None:
    few = SideParts(WRITERS[1:4], VECTORS[1:4], VECTORS[1:4].sum(0), (2,))
    sentences = replace(DIRECT, parts=few, value=1.5).findings()
    assert ["head 1" in sentence for sentence in sentences].count(True) == 1


def test_source_tokens_of_cross_attention_are_the_encoders() -> None:
    writers = (Writer("attention", 0, 1, 2, "decoder", cross=True), Writer("attention", 0, 1, 0, "decoder"))
    parts = SideParts(writers, -VECTORS[1:3], -VECTORS[1:3].sum(0), (1,))
    both = {"encoder": TOKENS, "decoder": TOKENS}
    result = Attribution("logit", -3.0, 0.0, parts, both)  # type: ignore[arg-type]
    assert "“run” (2) of the encoder reduces the outcome most (−2.00)" in result.findings()[-1]


def test_one_line_says_how_exact_it_is() -> None:
    plain = replace(BY_TOKENS, method="gradient x input", baseline=None, gap=None)
    for result, says in ((DIRECT, "2.0e-07"), (BY_TOKENS, "1.0e-03"), (plain, "linear"), (BY_HEADS, "One gradient")):
        (line,) = result.exactness()
        assert says in line
    assert plain.exactness() == plain.page().status
