"""The answer: what it says where all hold, where something fails, and where something cannot be measured."""

import json
import math
from pathlib import Path

import pytest
import torch

import regard.capture.hf_attention
from benchmarks.tiny import make
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.check.answer import Check, check
from regard.questions.check.claims import FAILS, HOLDS, UNMEASURED, Claim
from tests.capture.test_families import DECODERS, PAIRS, tiny
from tests.support.own_models import no_checks_of_annotations, opened

__all__ = ["no_checks_of_annotations"]  # the fixture
AREAS = [
    "attention", "states", "result", "embeddings", "statistics", "contributions", "arithmetic", "attribution",
    "padding", "interventions", "decoding", "precision",
]  # fmt: skip


def test_every_claim_is_measured_and_holds_of_a_decoder() -> None:
    model = Model(tiny("gpt2", DECODERS["gpt2"], language=True), None, name="tiny-gpt2")
    told: list[tuple[int, int]] = []
    found = check(model, progress=lambda *each: told.append(each))
    assert list(dict.fromkeys(each.area for each in found.claims)) == AREAS
    assert {each.outcome for each in found.claims} == {HOLDS}
    count = len(found.claims)
    assert found.title() == f"tiny-gpt2: {count} of {count} measured claims of exactness hold"
    assert found.findings()[0].startswith(f"All {count} claims that were measured hold. The nearest to its bound is ")
    assert len(found.findings()) == 1
    assert [done for done, _ in told] == list(range(told[0][1]))


def test_of_a_pair_and_of_what_is_no_text() -> None:
    pair = check(Model(tiny("marian", PAIRS["marian"]), None, name="marian"))
    assert pair.holds
    assert [each.area for each in pair.of(UNMEASURED)] == ["decoding"]
    assert pair.findings()[1].startswith("Not measured: decoding: generate: marian (MarianModel) has no language head")
    model, inputs = make("vit")
    seen = check(Model(model, None, name="vit"), inputs=inputs)
    assert seen.holds
    assert {each.area for each in seen.claims} == {*AREAS} - {"attribution", "padding", "interventions", "decoding"}
    assert {each.area for each in seen.of(UNMEASURED)} == {"embeddings"}


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_wrong_kernel_fails_in_every_medium(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    true = regard.capture.hf_attention.attend

    def wrong(query: torch.Tensor, *rest: torch.Tensor, **rule: object) -> object:
        return true(query * 1.2, *rest, **rule)  # type: ignore[arg-type]

    monkeypatch.setattr(regard.capture.hf_attention, "attend", wrong)
    found = check(Model(tiny("gpt2", DECODERS["gpt2"], language=True), None, name="tiny-gpt2"))
    assert not found.holds
    first = found.of(FAILS)[0]
    assert first.area == "attention"
    assert found.findings()[0].startswith("FAILS: weights are its own code's, 11 random ids: ")
    assert first.where in found.findings()[0]
    data = found.to_json(tmp_path / "check.json")
    assert data["holds"] is False
    assert json.loads((tmp_path / "check.json").read_text("utf-8"))["rows"][0]["outcome"] == FAILS
    table, every = found.panels()
    assert len(table.rows) < len(every.rows) == len(found.claims)  # type: ignore[attr-defined]
    assert table.rows[0][3] == FAILS  # type: ignore[attr-defined]
    assert found.save_page(tmp_path / "check.html") > 0
    frame = found.to_frame()
    assert frame["outcome"].tolist() == [each.outcome for each in found.claims]


def test_a_transformer_of_ours_has_no_other_code_and_says_so() -> None:
    found = check(opened("gpt"))
    assert found.holds
    assert {each.area for each in found.of(HOLDS)} >= {"embeddings", "statistics", "contributions", "attribution"}
    assert any("its code is regard's, there is no other to hold it against" in said for said in found.findings())


def test_many_failures_are_counted_and_one_without_number_sorts() -> None:
    claims = [Claim("area", f"said {n}", "of", math.inf, 0.0, reason="broke.") for n in range(7)]
    found = Check(
        "model", "torch", [*claims, Claim("other", "said", "of", reason="why"), Claim("a", "b", "", 0.0, 0.0)]
    )
    assert found.title() == "model: 1 of 8 measured claims of exactness hold"
    assert found.findings()[0] == "FAILS: said 0, of: broke."
    assert found.findings()[5:] == ["2 more fail: the table has them.", "Not measured: other: why."]


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_texts_that_cannot_be_read_are_refused_before_anything_is_measured(minilm: Model) -> None:
    with pytest.raises(RegardError, match="text is blank|empty"):
        check(minilm, [" "])
    with pytest.raises(RegardError, match="no tokenizer"):
        check(Model(tiny("gpt2", DECODERS["gpt2"]), None, name="gpt2"), ["a text"])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_that_computes_in_half_precision_is_held_to_its_own_rounding(dtype: torch.dtype) -> None:
    found = check(Model(tiny("marian", PAIRS["marian"]).to(dtype), None, name="marian"))
    assert found.holds, found.findings()
    assert {each.area for each in found.of(UNMEASURED)} <= {"contributions", "attribution", "decoding", "interventions"}
    assert min(each.bound or 0.0 for each in found.of(HOLDS) if each.area == "attention") >= 1e-3
