"""Other precisions, held against float64 as the model's own code in them is."""

import pytest
import torch

import regard.capture.hf_attention
from regard.errors import RegardError
from regard.memory import limit_memory_to
from regard.questions.check import kinds as module
from regard.questions.check.claims import FAILS, HOLDS
from regard.questions.check.kinds import device_and_dtype, kind_is_as_near, kinds
from tests.questions.check.test_passes import reads_of

CPU = torch.device("cpu")


def test_all_that_there_are_but_its_own() -> None:
    found = [device_and_dtype(*each) for each in kinds(reads_of("gpt2")[0].model)]
    assert found[:2] == ["cpu, bfloat16", "cpu, float16"]
    read = reads_of("gpt2")[0]
    read.model.model.to(torch.bfloat16)
    assert device_and_dtype(*kinds(read.model)[0]) == "cpu, float32"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "t5"])
def test_all_hold(kind: str, dtype: torch.dtype) -> None:
    found = list(kind_is_as_near(reads_of(kind)[0], CPU, dtype))
    assert [each.outcome for each in found] == [HOLDS, HOLDS]
    assert {each.of for each in found} == {device_and_dtype(CPU, dtype)}


def test_a_kernel_that_is_wrong_in_half_precision_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read, true = reads_of("gpt2")[0], regard.capture.hf_attention.attend

    def wrong(query: torch.Tensor, *rest: torch.Tensor, **rule: object) -> object:
        return true(query * (60.0 if query.dtype == torch.bfloat16 else 1.0), *rest, **rule)  # type: ignore[arg-type]

    monkeypatch.setattr(regard.capture.hf_attention, "attend", wrong)
    outcomes = {
        dtype: {each.outcome for each in kind_is_as_near(read, CPU, dtype)} for dtype in (torch.bfloat16, torch.float16)
    }
    assert FAILS in outcomes[torch.bfloat16]
    assert outcomes[torch.float16] == {HOLDS}


def test_a_copy_that_has_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reads_of("gpt2")[0]
    assert read.exact is not None
    monkeypatch.setattr("regard.memory.SMALL", 0)
    with limit_memory_to(100), pytest.raises(RegardError, match="a copy in bfloat16 needs"):
        list(module.kind_is_as_near(read, CPU, torch.bfloat16))
