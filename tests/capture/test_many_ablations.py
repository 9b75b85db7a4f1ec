"""Many ablations of one text: each as `trace` has it alone, and no layer below the first ablated one computed again."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (11,), generator=torch.Generator().manual_seed(5))
TARGET = IDS[:7].flip(0)


def opened(kind: str, **changes: Any) -> Model:
    return Model(make_model(kind, **changes), None, name=kind)


def ran(model: nn.Module, ending: str) -> tuple[Counter[str], list[Any]]:
    """How often the modules whose paths end so are called, and the handles of the hooks that count it."""
    counts: Counter[str] = Counter()
    return counts, [
        module.register_forward_pre_hook(lambda *_, path=path: counts.update([path]))
        for path, module in model.named_modules()
        if path.endswith(ending)
    ]


SETS = [
    [regard.ablate(regard.head(0, 1))],
    [regard.ablate(regard.edge(4, 2))],
    [regard.ablate(regard.head(1, 0)), regard.ablate(regard.edge(5, 0, layers=1))],
    [],
    [regard.ablate(regard.edge(10, 3, layers=1, heads=[0, 1]))],
    [regard.ablate(regard.head(0, 0)), regard.ablate(regard.head(1, 2))],
    [regard.ablate(regard.head(1, 1))],
]


GROUPED = {"num_key_value_heads": 3, "head_dim": 4}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "albert", "diffllama"])
def test_each_is_as_if_traced_alone(kind: str) -> None:
    model = opened(kind, **(GROUPED if kind == "gemma2" else {}))
    found = dict(model.ablated(ids=IDS, sets=SETS))
    assert sorted(found) == list(range(len(SETS)))
    for number, ablations in enumerate(SETS):
        alone = model.trace(ids=IDS, interventions=ablations)
        torch.testing.assert_close(found[number].last_hidden_state, alone.last_hidden_state, atol=2e-6, rtol=1e-5)
        if alone.logits is not None:
            torch.testing.assert_close(found[number].logits, alone.logits, atol=2e-6, rtol=1e-5)
        told = [[note for note in each.status.notes if note.startswith("ablated:")] for each in (found[number], alone)]
        assert told[0] == told[1]
        assert len(told[0]) == len(ablations)
        with pytest.raises(regard.RegardError, match=r"attention\[0\] was not kept"):
            found[number].attention[0]


def test_a_layer_below_is_not_computed_again() -> None:
    model = opened("bert")
    counts, handles = ran(model.model, "attention.self")
    list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(1, n))] for n in range(3)]))
    for handle in handles:
        handle.remove()
    assert counts == {"encoder.layer.0.attention.self": 1, "encoder.layer.1.attention.self": 2}
    assert not any("forward" in module.__dict__ for module in model.model.modules())


def test_an_encoder_is_run_once_for_its_decoder() -> None:
    model = opened("marian")
    parts = ("encoder", "decoder", "cross")
    sets = [
        [regard.ablate(regard.head(layer, head, part=part))] for part in parts for layer in (0, 1) for head in (0, 2)
    ]
    sets.append(
        [regard.ablate(regard.edge(3, 8, part="cross")), regard.ablate(regard.edge(3, 1, part="decoder", layers=1))]
    )
    counts, handles = ran(model.model, "self_attn")
    found = dict(model.ablated(ids=IDS, target_ids=TARGET, sets=sets))
    for handle in handles:
        handle.remove()
    # the plain pass, a batch for the encoder and a batch for the decoder
    assert [counts[f"{side}.layers.{n}.self_attn"] for side in ("encoder", "decoder") for n in (0, 1)] == [2, 2, 3, 3]
    for number, ablations in enumerate(sets):
        alone = model.trace(ids=IDS, target_ids=TARGET, interventions=ablations)
        for side in ("encoder", "decoder"):
            one, other = getattr(found[number], side), getattr(alone, side)
            torch.testing.assert_close(one.last_hidden_state, other.last_hidden_state, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("missing", ["is left out", "fails"])
def test_where_layers_pass_something_by_all_are_computed(missing: str) -> None:
    """A layer that hears from another one by the way, not through what it is given, as where keys are shared."""
    model = opened("bert")
    first, second = model.model.encoder.layer
    heard: dict[str, torch.Tensor] = {}
    first.attention.self.register_forward_hook(lambda _m, _a, out: heard.update(keys=out[0]))

    def hear(_module: nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
        return output + (heard.pop("keys") if missing == "fails" or heard else 0.0)

    second.register_forward_hook(hear)
    sets = [[regard.ablate(regard.head(1, 0))], [regard.ablate(regard.head(1, 2))]]
    found = dict(model.ablated(ids=IDS, sets=sets))
    assert sorted(found) == [0, 1]
    for number, ablations in enumerate(sets):
        alone = model.trace(ids=IDS, interventions=ablations)
        torch.testing.assert_close(found[number].last_hidden_state, alone.last_hidden_state, atol=2e-6, rtol=1e-5)


def test_as_many_run_together_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.models.runner import Runner

    model, tried, made = opened("gpt2"), [], []

    def foresee(_self: Runner, batches: Any, _keep: Any) -> None:
        tried.append(len(batches[0]))
        if len(batches[0]) > 3:
            raise regard.RegardError("too much")

    run = model._session.run
    monkeypatch.setattr(Runner, "_require_memory", foresee)
    monkeypatch.setattr(model._session, "run", lambda sources, *rest: made.append(len(sources)) or run(sources, *rest))
    assert len(list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(0, 1))]] * 7))) == 7
    assert tried == [8, 4, 2]  # each with the row that has no ablation
    assert made == [1] * 7


def test_the_model_comes_back_whole_after_a_refusal() -> None:
    model = opened("bert")
    with pytest.raises(regard.RegardError, match="head 6 is out of range, bert has heads 0 to 5"):
        list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(1, 1))], [regard.ablate(regard.head(1, 6))]]))
    assert not any("forward" in module.__dict__ for module in model.model.modules())
    with pytest.raises(regard.RegardError, match="layer 2 is out of range, bert has layers 0 to 1"):
        list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(2, 1))]]))
    with pytest.raises(regard.RegardError, match=r"got str, expected regard.ablate"):
        list(model.ablated(ids=IDS, sets=[["head 3"]]))
    with pytest.raises(regard.RegardError, match="got several texts, expected one"):
        list(model.ablated(ids=[[1, 2], [3, 4]], sets=[[regard.ablate(regard.head(0, 1))]]))
    with pytest.raises(regard.RegardError, match="bert is not an encoder-decoder: leave out part='decoder'"):
        list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(1, 1, part="decoder"))]]))
