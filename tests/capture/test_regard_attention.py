"""A transformer of ours is compared with the definition of attention, in float64."""

import pytest
import torch

import regard
from regard.capture import regard_attention
from regard.capture.regard_attention import DEFINITION, RegardSession, hooked
from regard.capture.state import Capture

IDS = [5, 17, 3, 60, 41, 9, 2]
SIZES = {"vocabulary": 97, "d_model": 24, "heads": 3, "layers": 2, "length": 31}


def test_every_call_is_compared_and_hooks_are_gone() -> None:
    model = regard.Transformer(regard.TransformerConfig(**SIZES, kind="encoder-decoder", start=1)).train()
    capture = Capture()
    opened = regard.load(model)
    assert isinstance(opened._session, RegardSession)
    pair = opened.trace(ids=IDS, target_ids=IDS[:3])
    assert pair.status.compared_with == DEFINITION
    assert pair.status.rows_compared == 2 * 4 + 2 * (3 + 3)  # of the encoder; of both calls of a decoder's layer
    assert pair.status.difference < 1e-6
    with hooked(model, capture):
        pass
    assert model.training
    assert capture.cross_paths == {path for path, _ in model.named_modules() if path.endswith(".cross")}
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_weights_unlike_the_definition_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = regard_attention.reference.attention

    def disturbed(query: torch.Tensor, key: torch.Tensor, *rest: object, **rule: object) -> object:
        return right(query, key * 1.1, *rest, **rule)

    monkeypatch.setattr(regard_attention.reference, "attention", disturbed)
    model = regard.Transformer(regard.TransformerConfig(**SIZES, kind="decoder"))
    assert regard.load(model).trace(ids=IDS).status.difference > 1e-5
