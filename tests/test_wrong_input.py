"""What is given wrongly to a call of one line is refused in one line that says what is needed, not deep inside."""

from types import SimpleNamespace
from typing import Any

import pytest

import regard
from regard.explain.causes.ablation_effect import removal
from regard.explain.causes.outcomes import Outcome, logit
from regard.explain.weights.head_means import cross_head_scores
from regard.explain.weights.head_scores import head_scores
from regard.shown import to_frame

pytestmark = pytest.mark.usefixtures("no_checks_of_annotations")


@pytest.fixture(scope="module")
def given(minilm) -> SimpleNamespace:
    trace = minilm.trace("a man on a river bank near a bank")
    return SimpleNamespace(model=minilm, trace=trace, read=minilm.trace("a river bank and a bank", window=6))


STATISTICS = r"statistics: got 'all', expected True, False or a regard\.Statistics"
NUMBER = "expected a whole number: all-MiniLM-L6-v2 has"
LENGTH = Outcome("length", lambda trace: trace.sides[-1].last_hidden_state.norm())
CASES: list[tuple[Any, str]] = [
    (lambda g: g.model.trace("a bank", statistics="all"), STATISTICS),
    (
        lambda g: regard.patch("values", 1, g.trace),
        "patch: too many positional arguments; it takes what, layer=, source=",
    ),
    (lambda g: regard.patch("values", layer=1), "patch: missing a required argument: 'source'"),
    (lambda g: regard.steer(g.trace[0], 1), "steer: too many positional arguments; it takes vector, layer="),
    (lambda g: regard.head(1), "head: missing a required argument: 'head'; it takes layer, head, part="),
    (lambda g: regard.ablate(regard.head(0, 0), layer=1), "ablate: pass head, query and key after a path"),
    (
        lambda g: g.model.trace("a bank", regard.ablate(regard.head(0, 0))),
        "trace: too many positional .* interventions=",
    ),
    (
        lambda g: g.model.generate("a bank", 3),
        "generate: too many positional arguments; it takes prompt, ids=, max_new_tokens=",
    ),
    (lambda g: regard.see(g.trace, 3), "word: got int, expected a string"),
    (lambda g: regard.see(g.trace, "bank", layer="a"), f"layer: got 'a', {NUMBER} layers 0 to 5"),
    (lambda g: regard.see(g.trace, "bank", layer=True), f"layer: got True, {NUMBER} layers 0 to 5"),
    (lambda g: regard.see(g.trace, "bank", head=1.5), f"head: got 1.5, {NUMBER} heads 0 to 11"),
    (lambda g: regard.see(g.trace, "bank", references=None), "references: got NoneType, expected traces of the words"),
    (
        lambda g: regard.save_page(g.trace, "a.html", word="bank", references=["river"]),
        "references: got str, expected traces of the words",
    ),
    (lambda g: g.trace.plot("bank", layer="a"), f"layer: got 'a', {NUMBER} layers 0 to 5"),
    (
        lambda g: g.trace.attention["bank"],
        r"attention\['bank'\]: needs the number of a layer, and words after it: attention\[0\]\['bank'\]",
    ),
    (lambda g: g.trace.attention["man", "river"], r"attention\['man'\]: needs the number of a layer"),
    (lambda g: g.trace.attention[0.5], r"attention\[0.5\]: needs the number of a layer$"),
    (
        lambda g: g.trace.attention[3, "man"],
        r"attention\[3, 'man'\]: needs the number of one of the layer's calls: words stand after both, attention\[3\]",
    ),
    (lambda g: g.trace.attention[3, 0, 0], r"attention\[3, 0, 0\]: needs a layer, or a layer and one of its calls"),
    (lambda g: g.trace.hidden_states[0:2] and g.trace[0:2], r"trace\[...\]: got slice, expected a word, an occurrence"),
    (lambda g: g.trace[1.5], r"trace\[...\]: got float, expected a word"),
    (lambda g: g.model.trace("a", window="x"), "window: got 'x', expected a whole number of tokens"),
    (lambda g: g.model.trace("a b c d", window=6, stride=1.5), "stride: got 1.5, expected a whole number of tokens"),
    (lambda g: g.model.trace("a", layers=1.5), "layers: got 1.5, expected whole numbers"),
    (
        lambda g: g.model.trace("a", interventions=regard.ablate(regard.head(0, 1))),
        r"interventions: got Ablate, expected a list of interventions: \[regard.ablate\(...\)\]",
    ),
    (lambda g: g.model.trace("a", interventions=[3]), "interventions: got int, expected regard.ablate"),
    (lambda g: head_scores([g.trace]), "got list, expected the trace of one text$"),
    (lambda g: head_scores(g.read), "got WindowedTrace, expected the trace of one text: one of its .windows, or what"),
    (lambda g: cross_head_scores([g.trace]), "got Trace, expected the traces of text and target$"),
    (lambda g: to_frame(3), "to_frame: got int, expected a result of regard.explain"),
    (lambda g: regard.why(g.model, [g.trace], "man"), "why: got list, expected a trace of this model"),
    (
        lambda g: regard.why(g.model, g.trace, 3),
        r"why: got int, expected a word, or one occurrence: trace.word\(...\)\[n\]",
    ),
    (
        lambda g: regard.why(g.model, g.trace, "man", tokens_by="rollout"),
        "tokens_by: got 'rollout', expected one of 'removal', 'edges', 'contribution', 'weight'",
    ),
    (lambda g: removal(3, "man"), "removal: got int, expected the trace of a text, or of a text and its target"),
    (lambda g: removal(g.trace, "man", part="encoder"), "removal: part: got 'encoder', but .* needs none"),
    (lambda g: regard.save(3, "a.safetensors"), "save: got int, expected traces$"),
    (lambda g: regard.save([g.trace, 3], "a.safetensors"), "save: got int, expected traces$"),
    (lambda g: regard.save(g.read, "a.safetensors"), "save: got WindowedTrace, expected traces, or its .wi"),
    (lambda g: g.trace.save(3), "save: got int, expected a file name"),
    (lambda g: regard.open(3), "open: got int, expected a file name"),
    (lambda g: logit(g.model, 1.5), "got 1.5, expected a token: its text or its id"),
    (lambda g: regard.attribute_to_tokens(g.model, g.trace, "bank"), "outcome: got str, expected an Outcome"),
    (lambda g: regard.attribute_to_tokens(g.model, "bank", LENGTH), "gradients: got str, expected a trace of one text"),
    (
        lambda g: regard.attribute_to_tokens(g.model, g.trace, LENGTH, steps="8"),
        "steps: got '8', expected a whole number, 1 or more",
    ),
]


@pytest.mark.usefixtures("some_page")
@pytest.mark.parametrize(("call", "says"), CASES)
def test_it_is_refused_in_one_line(given: SimpleNamespace, call: Any, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says) as caught:
        call(given)
    assert "\n" not in str(caught.value)


def test_functions_of_tensors_raise_what_torch_s_do() -> None:
    with pytest.raises(TypeError, match=STATISTICS), regard.record(statistics="all"):
        pass
    with pytest.raises(ValueError, match="top: got k 0, expected 1 or more"):
        regard.Statistics(top=0)
    with pytest.raises(ValueError, match="pooled: rows and cols are 3 and 0, expected 1 or more"):
        regard.Statistics(pooled=(3, 0))
