"""Experiments asked of the server: their pages hold what the library finds."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import ablate, edge, head
from regard.errors import RegardError
from regard.explain.causes.outcomes import cosine
from regard.server.asked import ExperimentAsked
from regard.server.traces import change_sentences, experiment_page
from regard.server.work import Job, Limits, RefusedError
from tests.support import RIVER
from tests.support.own_models import opened, pair

CLEAN, CORRUPTED = "We sat on the quiet river bank.", "We sat on the quiet money bank."


def page_of(model: Any, job: Job | None = None, **experiment: Any) -> Any:
    asked = ExperimentAsked.model_validate({"experiment": experiment})
    return experiment_page(model, asked, Limits(), job or Job(1000.0)).page.data()


def panel(page: Any, name: str) -> Any:
    return next(each for each in page["panels"] if each["name"] == name)


def test_patches_are_those_of_a_sweep_and_tell_how_far_they_are(minilm: Any) -> None:
    job = Job(1000.0)
    page = page_of(minilm, job, kind="patch", texts=[CLEAN, CORRUPTED], asked={"word": "bank", "what": "head_outputs"})
    outcome = cosine("bank", minilm.trace(CLEAN)["bank"], "its vector in the clean text")
    found = minilm.patch_sweep(CLEAN, CORRUPTED, outcome, what="head_outputs")
    shown = panel(page, "Patches")["values"]
    for row, shares in zip(shown, found.shares, strict=True):
        assert row == pytest.approx(list(shares), abs=1e-5)
    assert job.done == 1.0
    assert page["calls"] == []


def test_parts_and_scores_stand_beside_the_attention_of_the_text(minilm: Any) -> None:
    trace = minilm.trace(CLEAN)
    page = page_of(minilm, kind="attribute", texts=[CLEAN], asked={"word": "bank", "like": "river"})
    found = minilm.attribution(trace, "bank", toward=trace["river"])
    heads = {name: added for name, added in found.by("writer") if "head" in name}
    assert panel(page, "Heads")["values"][5][7] == pytest.approx(heads["layer 5, head 7"], abs=1e-6)
    assert len(page["calls"]) == 6
    assert page["opening"]["view"] == "panel 0"
    page = page_of(minilm, kind="score", texts=[CLEAN], asked={"query": 7, "key": "river", "layer": 2, "head": 3})
    score = minilm.score_sources(trace, 7, "river", layer=2, head=3)
    assert any(f"{abs(score.score - score.mean):.2f}" in line for line in page["findings"]), page["findings"]


def test_a_next_token_is_split_and_patched() -> None:
    model = opened("gpt")
    text = "A man is fishing on a river"
    page = page_of(model, kind="attribute", texts=[text], asked={"to": "bank", "against": "man"})
    found = model.attribution(model.trace(text), 6, "bank", against="man")
    heads = dict(found.by("writer"))
    assert panel(page, "Heads")["values"][0][0] == pytest.approx(heads["layer 0, head 0"], abs=1e-6)
    page = page_of(model, kind="patch", texts=[text, "A man is fishing on a bank"], asked={"to": "bank"})
    assert panel(page, "Patches")["values"][-1][-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("model", "experiment", "says"),
    [
        (lambda: opened("gpt"), {"kind": "attribute", "texts": ["A man"], "asked": {}}, "to is needed"),
        (lambda: opened("gpt"), {"kind": "attribute", "texts": ["A man"], "asked": {"word": "man"}}, "word needs like"),
        (
            lambda: opened("gpt"),
            {"kind": "attribute", "texts": ["A man"], "asked": {"word": "man", "to": "man"}},
            "given both",
        ),
        (lambda: opened("bert"), {"kind": "attribute", "texts": ["A man"], "asked": {"to": "man"}}, "no language head"),
        (lambda: opened("gpt"), {"kind": "patch", "texts": ["A man", "A man"], "asked": {}}, "to is needed"),
        (
            lambda: opened("gpt"),
            {"kind": "score", "texts": ["A man"], "asked": {"query": 9, "key": 0, "layer": 0, "head": 0}},
            "9",
        ),
        (lambda: pair(), {"kind": "attribute", "texts": ["A man"], "asked": {"to": "man"}}, "reads pairs"),
    ],
)
def test_what_cannot_be_asked_is_said(model: Callable[[], Any], experiment: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        page_of(model(), **experiment)


def test_a_sweep_that_is_stopped_ends(minilm: Any) -> None:
    job = Job(1000.0)
    job.stop()
    with pytest.raises(RefusedError, match="asked for no longer"):
        page_of(minilm, job, kind="patch", texts=[CLEAN, CORRUPTED], asked={"word": "bank"})


def test_the_most_changed_tokens_are_named_with_their_cosines(minilm: Any) -> None:
    before, after = minilm.trace(RIVER), minilm.trace(RIVER, interventions=[ablate(head(0, 3))])
    (line,) = change_sentences(before, after)
    assert line.startswith("ablated: head 3 of layer 0: “")
    cosines = torch.cosine_similarity(before.last_hidden_state.double(), after.last_hidden_state.double(), dim=-1)
    found = re.findall(r"“([^”]+)” \((\d+)\) (?:leaves the last layer )?at (?:cosine )?(\d\.\d{3})", line)
    assert [int(n) for _, n, _ in found] == cosines.argsort()[:3].tolist()
    for text, n, shown in found:
        assert text == before.tokens[int(n)].text
        assert abs(float(shown) - float(cosines[int(n)])) <= 5.1e-4


def test_only_what_changed_is_named(minilm: Any) -> None:
    before = minilm.trace(RIVER)
    assert change_sentences(before, before) == []
    last = minilm.trace(
        RIVER, interventions=[ablate(edge(1, 2, layers=5))]
    )  # reaches no other token behind the last layer
    (line,) = change_sentences(before, last)
    assert line.count("“") == 1
    assert "(1)" in line
