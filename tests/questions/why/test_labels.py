"""Effects on a label's logit are those of real ablations, contributions those of real derivatives."""

import pytest
import torch

import regard
from regard.explain.causes.ablation_effect import removal
from regard.explain.causes.outcomes import probability
from tests.support.classifiers import LABELS, classifier, plain_logits

TEXT = "a man on a river bank"


def scaled_head(model, head: int, by: float) -> torch.Tensor:
    """The model's own logits with a head of the last layer scaled, before W_O."""
    project = model.model.get_submodule("bert.encoder.layer.1.attention.output.dense")
    factor = torch.ones(24, dtype=torch.float64)
    factor[8 * head : 8 * head + 8] = by
    with project.register_forward_pre_hook(lambda _, args: (args[0] * factor,)):
        return plain_logits(model, TEXT)


@pytest.mark.parametrize(("kind", "word"), [("SequenceClassification", None), ("TokenClassification", "river")])
def test_effects_and_contributions_are_recomputed(kind: str, word: str | None) -> None:
    model = classifier("Bert", kind)
    model = regard.load(model.model.double(), tokenizer=model.tokenizer)
    trace = model.trace(TEXT)
    row = (lambda logits: logits) if word is None else (lambda logits: logits[5])
    found = regard.why(model, trace, word, to="POSITIVE")
    assert (found.to, found.by, found.word) == ("POSITIVE", "logit", word or "")
    assert found.logit == pytest.approx(float(row(trace.logits)[2]))
    assert found.probability == pytest.approx(float(row(trace.logits).softmax(-1)[2]))
    assert len(found.tokens) == len(trace.tokens)
    for cause in (*found.tokens, *found.heads):
        cut = (
            removal(trace, cause.token) if cause.head is None else [regard.ablate(regard.head(cause.layer, cause.head))]
        )
        without = row(model.trace(TEXT, interventions=cut).logits)
        assert cause.logit == pytest.approx(float((row(trace.logits) - without)[2]), abs=1e-9)
        fall = row(trace.logits).softmax(-1) - without.softmax(-1)
        assert cause.probability == pytest.approx(float(fall[2]), abs=1e-9)
        if cause.layer == 1:
            steps = (row(scaled_head(model, cause.head, 1 + step))[2] for step in (1e-4, -1e-4))
            slope = float(next(steps) - next(steps)) / 2e-4
            assert cause.contribution == pytest.approx(slope, abs=1e-6)
    assert sum(c.contribution for c in found.tokens) == pytest.approx(sum(c.contribution for c in found.heads))
    sizes = [abs(cause.logit) for cause in found.tokens]
    assert sizes == sorted(sizes, reverse=True)
    assert "“POSITIVE”" in found.findings()[0]
    assert found.rows()[0]["logit"] == found.tokens[0].logit


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "DistilBert", "Llama"])
def test_direct_parts_sum_to_a_labels_logit(kind: str) -> None:
    model = classifier(kind, "SequenceClassification")
    trace = model.trace(TEXT)
    found = regard.attribution(model, trace, to="positive", against=0)
    assert sum(value for _, value in found.by()) == pytest.approx(float(trace.logits[2] - trace.logits[0]), abs=1e-4)
    assert found.title().startswith("Contributions to the logit difference “POSITIVE” − “NEGATIVE” (")
    tokens = classifier(kind, "TokenClassification")
    own = tokens.trace(TEXT)
    parts = regard.attribution(tokens, own, "river", to="POSITIVE").by("source")
    assert sum(value for _, value in parts) == pytest.approx(float(own.logits[5, 2]), abs=1e-4)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_refused(minilm) -> None:
    whole, tokens = (classifier("Bert", kind) for kind in ("SequenceClassification", "TokenClassification"))
    choice = classifier("Bert", "MultipleChoice")
    traces = whole.trace(TEXT), tokens.trace(TEXT)
    for ask, says in (
        (
            lambda: regard.why(whole, traces[0], to="SAD"),
            f"got 'SAD', expected a label of the model: {str(LABELS)[1:-1]}",
        ),
        (lambda: regard.why(whole, traces[0], to=3), "got 3, expected a label"),
        (lambda: regard.why(whole, traces[0], to=[2]), r"got \[2\], expected a label"),
        (lambda: regard.attribution(whole, traces[0], to="POSITIVE", against=2), "got 2 against itself"),
        (lambda: regard.why(whole, traces[0], "bank", to=0), "labels the whole text: leave out the position “?bank”?$"),
        (lambda: regard.why(tokens, traces[1], to=0), "labels each token: choose a word"),
        (lambda: regard.attribution(whole, traces[0], "bank", to=0), "needs no place: it labels the whole text"),
        (lambda: regard.attribution(tokens, traces[1], to=0), "needs a place, a word"),
        (lambda: regard.why(minilm, minilm.trace(TEXT), to="SAD"), "doesn't classify single texts: pass a word"),
        (lambda: probability(choice, 0).of(choice.trace(TEXT)), "has no label probabilities: use the logit"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            ask()
