"""What heads gave in a pass with gradients: against the maps and values of the plain trace."""

from typing import Any

import pytest
import torch

from regard.capture.interventions.call_ids import CallId
from regard.models.gradient_runs import gradient_run
from tests.support import generation
from tests.support.own_models import TEXTS, opened, pair

TEXT = "A man on a river bank."


def test_outputs_are_weights_times_values(minilm: Any) -> None:
    trace = minilm.trace(TEXT)
    done, _ = gradient_run(minilm, trace, heads=True)
    assert [each.call for each in done.heads] == [CallId(None, layer) for layer in range(6)]
    for layer, each in enumerate(done.heads):
        expected = trace.attention[layer][:] @ trace.values[layer]
        torch.testing.assert_close(each.output[0].detach(), expected, atol=2e-5, rtol=0)


def test_shared_values_are_told_apart_by_head() -> None:
    model = generation.opened("llama")
    trace = model.trace(ids=generation.IDS)
    done, _ = gradient_run(model, trace, heads=True)
    each = done.heads[0]
    assert trace.values[0].shape[0] < trace.attention[0].shape[0]
    assert each.value.shape[1] == trace.attention[0].shape[0]
    shared = each.value.shape[1] // trace.values[0].shape[0]
    torch.testing.assert_close(each.value[0].detach(), trace.values[0].repeat_interleave(shared, 0), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["gpt", "llama", "bert"])
def test_of_models_of_ours(kind: str) -> None:
    model = opened(kind)
    trace = model.trace(TEXTS[0])
    done, own = gradient_run(model, trace, heads=True)
    assert [each.call.layer for each in done.heads] == [0, 1]
    (slope,) = done.gradients(own.sides[-1].contextual[2].sin().sum(), [done.heads[0].value])
    assert bool(slope.any())


def test_a_pair_has_three_kinds() -> None:
    model = pair()
    done, _ = gradient_run(model, model.trace(TEXTS[0], target="Un homme"), heads=True)
    assert [(each.call.part, each.call.layer) for each in done.heads] == [
        ("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)
    ]  # fmt: skip


def test_none_are_kept_unless_asked_for(minilm: Any) -> None:
    done, _ = gradient_run(minilm, minilm.trace(TEXT))
    assert done.heads == []
