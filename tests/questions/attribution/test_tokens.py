"""Attribution of outcomes to tokens by gradients, against finite differences and sums that have to come out."""

from typing import Any

import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, cosine, logit_difference
from regard.models.gradient_runs import gradient_run
from regard.questions.attribution import tokens
from tests.support import generation
from tests.support.own_models import no_checks_of_annotations

__all__ = ["no_checks_of_annotations"]  # the fixture

RIVER, MONEY = "A man on a river bank.", "Money in a town bank."


@pytest.fixture(scope="module")
def river(minilm: Any) -> Any:
    return minilm.trace(RIVER)


@pytest.fixture(scope="module")
def outcome(minilm: Any) -> Outcome:
    return cosine("bank", minilm.trace(MONEY)["bank"], "the bank of money")


def test_integrated_gradients_sum_to_what_the_outcome_is_above_the_baseline(
    minilm: Any, river: Any, outcome: Outcome
) -> None:
    found = minilm.attribute_to_tokens(river, outcome)
    assert found.outcome == pytest.approx(outcome.of(river), abs=1e-6)
    assert found.baseline is not None
    assert float(found.scores.sum()) == pytest.approx(found.outcome - found.baseline, abs=1e-3)
    assert found.gap == pytest.approx(abs(float(found.scores.sum()) - (found.outcome - found.baseline)))
    assert found.word("bank") == max(float(each) for each in found.scores)
    rough = minilm.attribute_to_tokens(river, outcome, steps=1)
    assert rough.gap is not None
    assert found.gap is not None
    assert rough.gap > 10 * found.gap
    assert [row["text"] for row in found.rows()] == [token.text for token in river.tokens]


def test_more_steps_are_taken_until_the_gap_is_small(
    minilm: Any, river: Any, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = minilm.attribute_to_tokens(river, outcome)
    assert due.steps == tokens.STEPS
    monkeypatch.setattr(tokens, "STEPS", 1)
    found = minilm.attribute_to_tokens(river, outcome)
    assert found.steps in (2, 4, 8, 16)
    assert found.gap <= 0.05 * abs(found.outcome - found.baseline)
    fewer = minilm.attribute_to_tokens(river, outcome, steps=found.steps // 2)
    assert fewer.gap > 0.05 * abs(found.outcome - found.baseline)
    assert fewer.findings()[0].endswith("steps too far apart for single scores to be believed.")
    monkeypatch.setattr(tokens, "MOST_STEPS", found.steps // 2)
    assert minilm.attribute_to_tokens(river, outcome).steps <= found.steps // 2


def test_gradient_times_input_is_the_slope_along_the_embedding(minilm: Any, river: Any, outcome: Outcome) -> None:
    """Making one token's learned embedding a little longer moves the outcome by its score."""
    found = minilm.attribute_to_tokens(river, outcome, method="gradient x input")
    assert (found.baseline, found.gap) == (None, None)
    for token in (0, 5, 6):
        ends = []
        for step in (-0.02, 0.02):
            longer = torch.ones(len(river.tokens), 1)
            longer[token] += step
            ends.append(outcome.of(gradient_run(minilm, river, lambda _, rows, by=longer: rows * by)[1]))
        assert float(found.scores[token]) == pytest.approx((ends[1] - ends[0]) / 0.04, abs=2e-4)


def test_of_a_causal_model_the_last_token_is_reached_by_all_and_others_by_those_before() -> None:
    model = generation.opened("llama")
    trace = model.trace(ids=generation.IDS)
    last = Outcome("a logit", lambda each: each.sides[-1].logits[-1, 3])
    found = model.attribute_to_tokens(trace, last, steps=64)
    assert found.gap is not None
    assert found.gap < 1e-2 * abs(found.outcome - (found.baseline or 0)) + 1e-4
    assert bool((found.scores != 0).all())
    inner = Outcome("a logit", lambda each: each.sides[-1].logits[2, 3])
    early = model.attribute_to_tokens(trace, inner, method="gradient x input")
    assert bool((early.scores[:3] != 0).all())
    assert not bool(early.scores[3:].any())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 0}, "steps: given 0, needs a whole number, 1 or more"),
        ({"baseline": 10**6}, "baseline: given 1000000, needs 'mean', 'zero' or one of the ids"),
    ],
)
def test_what_is_refused(minilm: Any, river: Any, outcome: Outcome, given: Any, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        minilm.attribute_to_tokens(river, outcome, **given)


def test_an_outcome_without_a_gradient_is_refused(minilm: Any, river: Any) -> None:
    with pytest.raises(RegardError, match="outcome 'length' gives a plain number: gradients need"):
        minilm.attribute_to_tokens(river, Outcome("length", lambda trace: trace.contextual.norm().item()))


def test_another_models_trace_is_refused(minilm: Any, river: Any, outcome: Outcome) -> None:
    changed = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 2))])
    with pytest.raises(RegardError, match="the last hidden state is .* of its length from the trace's"):
        minilm.attribute_to_tokens(changed, outcome)


def test_an_encoder_decoder_has_scores_of_both_texts() -> None:
    from regard.text import tokenizers

    torch.manual_seed(5)
    words = tokenizers.words(["the white table stands", "la table blanche reste"], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    pair = model.trace("the white table stands", target="la table blanche reste")
    outcome = logit_difference(model, "blanche", "reste", at="table")
    found = model.attribute_to_tokens(pair, outcome, steps=64)
    assert found.gap is not None
    assert found.gap < 0.02 * abs(found.outcome - (found.baseline or 0))
    assert {row["side"] for row in found.rows()} == {"source", "target"}
    after = [n for n, token in enumerate(pair.decoder.tokens) if n > list(pair.decoder.word("table")[0].tokens)[-1]]
    target = found.scores[len(pair.encoder.tokens) :]
    assert not bool(target[after].any())  # the decoder does not look ahead
    assert bool((found.scores[: len(pair.encoder.tokens)] != 0).all())


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_norms_and_words(minilm: Any) -> None:
    text = "The riverbankers sat on a bank."
    trace = minilm.trace(text)
    outcome = cosine("bank", minilm.trace(MONEY)["bank"])
    found = minilm.attribute_to_tokens(trace, outcome, method="gradient x input")
    done, own = gradient_run(minilm, trace)
    (slope,) = done.gradients(outcome.number(own), done.embeddings)
    product = trace.learned.double() * slope.double()
    torch.testing.assert_close(found.norms, product.norm(dim=1), atol=1e-7, rtol=1e-4)
    words = dict(found.words())
    assert list(words) == ["[CLS]", "The", "riverbankers", "sat", "on", "a", "bank", ".", "[SEP]"]
    pieces = list(trace.word("riverbankers")[0].tokens)
    assert len(pieces) > 1
    assert words["riverbankers"] == pytest.approx(float(found.scores[pieces].sum())) == found.word("riverbankers")
    assert sum(words.values()) == pytest.approx(float(found.scores.sum()))
    most = max(pieces, key=lambda n: abs(float(found.scores[n])))
    assert dict(found.words("absmax"))["riverbankers"] == float(found.scores[most])
    assert dict(found.words("mean", "norms"))["riverbankers"] == pytest.approx(float(found.norms[pieces].mean()))
    assert dict(found.by("word"))[f"“riverbankers” ({pieces[0]})"] == words["riverbankers"]
    assert [abs(score) for _, score in found.by()] == sorted(map(abs, found.scores.tolist()), reverse=True)
    with pytest.raises(RegardError, match="of: given 'lengths', needs 'scores' or 'norms'"):
        found.words(of="lengths")  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="by: given 'letter', needs 'token' or 'word'"):
        found.by("letter")  # type: ignore[arg-type]
