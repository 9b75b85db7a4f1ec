"""Sentences about what moved a word say what was measured, and nothing that it does not bear."""

import math
from dataclasses import replace

import pytest

from regard.questions.why.answer import Cause, Why, WhyOfTexts


def token(name: str, place: int, effect: float, weight: float = 0.1, **flags) -> Cause:
    return Cause(name, place, None, None, weight, 0.1, effect, **flags)


def head(layer: int, number: int, effect: float, divergence: float | None = None) -> Cause:
    return Cause(f"layer {layer}, head {number}", None, layer, number, 0.5, 0.1, effect, divergence)


@pytest.fixture
def why() -> Why:
    tokens = [
        token("[CLS]", 0, 0.3, 0.6, special=True), token("river", 2, 0.06, 0.2), token("bank", 3, 0.02, own=True),
        token("fish", 4, 0.01, 0.05), token("the", 1, 0.00001, 0.05),
    ]  # fmt: skip
    return Why("bank", tokens, [head(5, 7, 0.04), head(0, 1, 0.01)], (0.7, 0.9), (0.5, 0.5))


def test_the_numbers_are_the_rankings(why: Why) -> None:
    assert why.findings() == [
        "If no token could look at “river”, the contextual embedding of “bank” would change most (by 0.060, as 1 - "
        "cosine), special tokens, attention sinks and the word itself aside; next “fish” (0.010).",
        "Of special tokens, sinks and the word itself, the special token [CLS] (0.30) changes it most, next “bank” "
        "itself (0.020); without a special token or a sink others share its weight.",
        "It looks most at the special token [CLS] (weight 0.60, mean of all layers and heads); special tokens, sinks "
        "and itself aside, at “river” (0.20), which of other words changes it most, too.",
        "Of the 2 heads layer 5, head 7 matters most: without it the change is 0.040; next layer 0, head 1 (0.010).",
        "Attention weights alone rank the tokens roughly as their removal does (rank correlation 0.70); contributions "
        "(weight × value × output projection) better (0.90).",
    ]


def test_words_that_are_first_of_all_tokens_need_no_exception(why: Why) -> None:
    tokens = [replace(cause, effect=0.0, weight=0.01) if cause.own or cause.special else cause for cause in why.tokens]
    first, looks, *_ = replace(why, tokens=tokens).findings()
    assert first.startswith("If no token could look at “river”, the contextual embedding of “bank” would change most")
    assert looks == (
        "It looks most at “river” (weight 0.20, mean of all layers and heads), which changes it most, too."
    )


def test_a_piece_of_the_word_is_not_called_the_word(why: Why) -> None:
    tokens = [replace(cause, name="##ing") if cause.own else cause for cause in why.tokens]
    assert "next its own “##ing” (0.020)" in replace(why, tokens=tokens, word="banking").findings()[1]


def test_its_own_look_alone_is_told_apart(why: Why) -> None:
    said = replace(why, tokens_by="edges").findings()
    assert "If “bank” could not look at “river”, its contextual embedding would change most (by 0.060" in said[0]
    assert "Attention weights alone rank the tokens roughly as ablating its looks at them does" in said[-1]


@pytest.mark.parametrize("tokens_by", ["contribution", "weight"])
def test_what_changes_most_is_said_in_any_order(why: Why, tokens_by: str) -> None:
    other = replace(why, tokens=why.tokens[::-1], tokens_by=tokens_by)
    assert other.findings() == why.findings()


def test_what_is_looked_at_most_need_not_matter_most(why: Why) -> None:
    tokens = [replace(cause, weight=0.4) if cause.name == "fish" else cause for cause in why.tokens]
    said = replace(why, tokens=tokens).findings()
    assert said[2] == (
        "It looks most at the special token [CLS] (weight 0.60, mean of all layers and heads); special tokens, sinks "
        "and itself aside, at “fish” (0.40), which changes it less than “river” does: 0.010 against 0.060."
    )


def test_nothing_is_said_where_nothing_changes(why: Why) -> None:
    still = [replace(cause, effect=0.0) for cause in why.tokens]
    said = replace(why, tokens=still, heads=[head(0, 0, 0.0)], tokens_agreement=(math.nan,) * 2).findings()
    assert said == [
        "No single other word matters to “bank”: without any one of them it changes by less than 0.0001.",
        "No single head matters: without any one of them nothing changes by 0.0001.",
    ]


def test_a_sink_is_called_one(why: Why) -> None:
    sunk = [replace(why.tokens[0], name="Anna", special=False, sink=True), *why.tokens[1:]]
    assert replace(why, tokens=sunk).findings()[1] == (
        "Of special tokens, sinks and the word itself, the attention sink “Anna” (0.30) changes it most, next “bank” "
        "itself (0.020); without a special token or a sink others share its weight."
    )


def test_one_word_alone(why: Why) -> None:
    alone = replace(why, tokens=[replace(why.tokens[2], effect=0.4), why.tokens[0]])
    said = alone.findings()
    assert said[0] == "“bank” looks at no other word: only at itself, special tokens and sinks."
    assert said[1] == (
        "Of special tokens, sinks and the word itself, “bank” itself (0.40) changes it most, next the special token "
        "[CLS] (0.30)."
    )
    assert not any("river" in sentence or "rank the tokens" in sentence for sentence in said)


def test_weights_that_do_not_tell(why: Why) -> None:
    (said,) = (s for s in replace(why, tokens_agreement=(-0.2, -0.21)).findings() if "rank" in s)
    assert "quite otherwise than their removal does (rank correlation −0.20)" in said
    assert said.endswith("about as well (−0.21).")


def test_of_causal_models_it_is_the_next_token(why: Why) -> None:
    tokens = [replace(cause, divergence=2 * cause.effect, part="cross") for cause in why.tokens]
    said = replace(why, tokens=tokens, heads=[head(0, 0, 0.1, 0.5)], by="divergence").findings()
    assert "If no token could look at “river” of the source, what the model says after “bank” would change" in said[0]
    assert "(by 0.12, in nats, as KL divergence)" in said[0]
    assert "the change is 0.50" in said[3]


def test_several_occurrences_share_the_screen(why: Why) -> None:
    two = WhyOfTexts([("1", why), ("2", replace(why, tokens=[why.tokens[0]]))]).findings()
    assert two[0] == (
        "“bank” of text 1 would change most without “river” (0.060), special tokens, attention sinks and the word "
        "itself aside; then “fish” (0.010)."
    )
    assert two[1].startswith("“bank” of text 2 looks at no other word")
    assert len(two) == 4
    many = WhyOfTexts([(str(n), why) for n in range(9)]).findings()
    assert (len(many), many[-1]) == (5, "5 more occurrences are in the table.")


def test_a_real_word(minilm) -> None:
    found = minilm.why(minilm.trace("a man on a river bank"), "bank")
    own = [cause.name for cause in found.tokens if cause.own]
    special = {cause.name for cause in found.tokens if cause.special}
    assert (own, special) == (["bank"], {"[CLS]", "[SEP]"})
    best = next(cause for cause in found.tokens if not (cause.own or cause.special or cause.sink))
    assert f"if no token could look at “{best.name}”" in found.findings()[0].lower()
