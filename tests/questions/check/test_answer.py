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
    rows = len(found.panels()[0].rows)  # type: ignore[attr-defined]
    assert found.title() == f"tiny-gpt2: {rows} of {rows} measured claims of exactness hold"
    counts = f"All {rows} claims that were measured hold, in {len(found.claims)} measurements."
    assert found.findings()[0].startswith(f"{counts} The nearest to its bound is ")
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


@pytest.mark.usefixtures("no_checks_of_annotations", "some_page")
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
    assert found.title() == "model: 1 of 8 measured claims of exactness hold, 1 not measured"
    assert found.findings()[0] == "FAILS: said 0, of: broke."
    assert found.findings()[5:] == [
        "2 more measurements fail: the table has them.", "1 of 8 claims that were measured hold; 1 was not measured.",
        "Not measured: other: why.",
    ]  # fmt: skip


def test_what_was_not_measured_is_counted_in_the_first_sentence_and_a_part_in_its_row() -> None:
    held, left = Claim("arithmetic", "maps", "own", 0.0, 1e-5), Claim("arithmetic", "maps", "trace", reason="why")
    others = [Claim("attention", "weights", reason="why"), Claim("states", "states", reason="why")]
    found = Check("mamba", "torch", [held, left, *others])
    first = "The one claim that was measured holds, in 1 measurement; 2 were not measured, 1 only in part."
    assert found.findings()[0].startswith(first)
    table = found.panels()[0]
    assert [row[3] for row in table.rows] == ["holds, in part", UNMEASURED, UNMEASURED]  # type: ignore[attr-defined]
    nothing = Check("mamba", "torch", others)
    assert nothing.findings()[0] == "No claim was measured; 2 were not measured."


def test_tokens_that_differ_are_counted_in_words() -> None:
    found = Check("model", "torch", [Claim("decoding", "tokens", "", 8.0, 0.0, where="token 0", total=12)])
    assert found.findings()[0] == "FAILS: tokens: 8 of 12 tokens differ where none may (token 0)."
    assert found.panels()[0].rows[0][1] == "8 of 12 tokens"  # type: ignore[attr-defined]


def test_what_load_opens_is_opened(tmp_path: Path) -> None:
    model = tiny("gpt2", DECODERS["gpt2"])
    model.save_pretrained(tmp_path)
    for given in (model, tmp_path, str(tmp_path)):
        assert check(given).holds
    with pytest.raises(RegardError, match="load: given int"):
        check(3)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_texts_that_cannot_be_read_are_refused_before_anything_is_measured(minilm: Model) -> None:
    with pytest.raises(RegardError, match="text 1 is blank"):
        check(minilm, [" "])
    with pytest.raises(RegardError, match="no tokenizer"):
        check(Model(tiny("gpt2", DECODERS["gpt2"]), None, name="gpt2"), ["a text"])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_that_computes_in_half_precision_is_held_to_its_own_rounding(dtype: torch.dtype) -> None:
    found = check(Model(tiny("marian", PAIRS["marian"]).to(dtype), None, name="marian"))
    assert found.holds, found.findings()
    assert {each.area for each in found.of(UNMEASURED)} <= {"contributions", "attribution", "decoding", "interventions"}
    assert min(each.bound or 0.0 for each in found.of(HOLDS) if each.area == "attention") >= 1e-3
