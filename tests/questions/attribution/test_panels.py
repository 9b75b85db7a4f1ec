"""An outcome's parts in every medium: every number is the split's, and those of a grid sum to it."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import regard
from regard.capture.gradients.score_path import SideParts, Writer
from regard.display.answer import MAX_PARTS
from regard.questions.attribution.direct import Attribution, short_heads
from regard.questions.attribution.gradients import TokenAttribution
from regard.text.tokens import Token
from regard.web.html_file import script_json
from tests.support import in_text

TEXT = "He sat on a river bank, fishing."


@pytest.fixture(scope="module")
def found(minilm: Any) -> Any:
    trace = minilm.trace(TEXT)
    return regard.attribution(minilm, trace, "bank", toward=trace["river"])


def test_heads_are_a_grid_and_each_is_made_of_its_source_tokens(found: Any) -> None:
    page: Any = found.page().data()
    script_json(page)
    assert page["title"] == "Contributions to the cosine to the direction at “bank” (0.61)"
    heads, sources, layers, parts, carried = page["panels"]
    names = ["Heads", "Source tokens", "Layers", "Components", "Sources"]
    assert [panel["name"] for panel in page["panels"]] == names
    by_writer, by_token = dict(found.by()), dict(found.by("token"))
    assert (len(heads["rows"]), len(heads["columns"])) == (6, 12)
    tokens = heads["behind"]["texts"][0]["tokens"]
    for layer, row in enumerate(heads["values"]):
        for head, value in enumerate(row):
            assert value == pytest.approx(by_writer[f"layer {layer}, head {head}"], abs=1e-12)
            own = heads["behind"]["values"][layer][head]
            assert own == [
                pytest.approx(by_token.get(f"layer {layer}, head {head} from “{token}” ({n})", 0.0), abs=1e-12)
                for n, token in enumerate(tokens)
            ]
    by_source = dict(found.by("source"))
    assert sources["values"] == [
        pytest.approx(by_source[f"attention from “{token}” ({n})"], abs=1e-12) for n, token in enumerate(tokens)
    ]
    assert [row[0] for row in layers["rows"]] == [
        "outside the layers", *(f"layer {n}" for n in range(6))
    ]  # fmt: skip
    assert layers["total"][:2] == ["all", found.value]
    assert sum(row[1] for row in layers["rows"]) == pytest.approx(found.value, abs=1e-6)
    for n, row in enumerate(layers["rows"][1:]):
        assert row[2] == pytest.approx(sum(heads["values"][n]), abs=1e-12)
        assert row[3] == pytest.approx(by_writer[f"layer {n}, feed-forward"], abs=1e-12)
    every = [list(each) for each in short_heads(found.by("token"))]
    assert parts["parts"] == every[:MAX_PARTS]
    assert parts["others"] == [len(every) - MAX_PARTS, sum(each for _, each in every[MAX_PARTS:])]
    assert parts["whole"] == found.value
    assert dict(carried["parts"]) == {
        name.removeprefix("attention from "): value for name, value in by_source.items() if name.startswith("attention")
    }
    assert carried["whole"] == sum(added for _, added in carried["parts"])


def test_its_sentences_are_those_of_every_other_medium(found: Any) -> None:
    page = found.page()
    assert page.findings == found.findings() == found.to_json()["findings"]
    assert page.status[0].startswith("Computed with ")
    assert page.status[-1] == found.exactness()[0]
    assert f"{found.error:.1e}" in page.status[-1]
    by_word = replace(found, unit="word")
    assert by_word.page().findings == by_word.findings()
    assert "word" in [panel.note for panel in by_word.panels()][3]


def test_of_an_encoder_decoder_heads_across_look_at_the_source(tiny_pair: Any) -> None:
    trace = tiny_pair.trace("the man on the river bank", target="sur la rive")
    found = regard.attribution(tiny_pair, trace, 2, 5)
    page: Any = found.page().data()
    heads, source, target, *_ = page["panels"]
    sides = [[token.text for token in side.tokens] for side in trace.sides]
    by_writer = dict(found.by())
    assert {name.split()[0] for name in heads["rows"]} == {"decoder"}
    for row, (name, of) in enumerate(zip(heads["rows"], heads["behind"]["of"], strict=True)):
        across = name.endswith(", cross")
        assert heads["behind"]["texts"][of]["tokens"] == sides[0 if across else 1]
        layer = name.removeprefix("decoder ").removesuffix(", cross")
        for head, value in enumerate(heads["values"][row]):
            label = f"{layer}, {'cross ' * across}head {head} of the decoder"
            assert value == pytest.approx(by_writer[label], abs=1e-12)
            assert value == pytest.approx(sum(heads["behind"]["values"][row][head]), abs=1e-12)
    assert {panel["name"] for panel in (source, target)} == {
        "Source tokens of the encoder",
        "Source tokens of the decoder",
    }
    assert sum(sum(panel["values"]) for panel in (source, target)) == pytest.approx(
        sum(sum(row) for row in heads["values"]), abs=1e-12
    )


def test_every_token_has_its_score_and_the_gap_is_told() -> None:
    strip, bars = BY_TOKENS.page().data()["panels"]
    assert strip["tokens"] == [token.text for token in BY_TOKENS.tokens]
    assert strip["values"] == BY_TOKENS.scores.tolist()
    assert bars["parts"] == [list(each) for each in BY_TOKENS.by("token")]
    source, target, _ = replace(BY_TOKENS, sides=(1, 2)).page().data()["panels"]
    assert [*source["values"], *target["values"]] == strip["values"]
    assert (source["name"], target["name"]) == ("Tokens of the source", "Tokens of the target")


TWO_WORDS = "rivers run"
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
    for result, says in ((DIRECT, "2.0e-07"), (BY_TOKENS, "1.0e-03"), (plain, "linear")):
        (line,) = result.exactness()
        assert says in line
    assert plain.exactness() == plain.page().status
