import pytest
import torch

import regard
from regard.explain.causes import rollout as module
from regard.explain.causes.rollout import rollout
from tests.support.attention_outputs import make_model, traced

IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(2))


def whole(maps) -> torch.Tensor:
    """The product of all layers as Abnar & Zuidema write it: n × n matrices, layer by layer."""
    product = torch.eye(maps[0].shape[1], dtype=torch.float64)
    for weights in maps:
        layer = weights.dense().double().mean(0)
        product = (0.5 * layer + 0.5 * torch.eye(len(layer))) @ product
    return product


@pytest.fixture(params=["bert", "llama"])
def trace(request):
    return traced(make_model(request.param, num_key_value_heads=2, num_hidden_layers=5), IDS)


@pytest.mark.parametrize("band", [1, 6 * 13 * 4, 1 << 22])
def test_rows_are_those_of_the_whole_product(trace, monkeypatch, band: int) -> None:
    monkeypatch.setattr(module, "BAND", band)
    torch.testing.assert_close(rollout(trace), whole(trace.attention), atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, [7, 2]), whole(trace.attention)[[7, 2]], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, [7], layer=2), whole(trace.attention[:3])[[7]], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace).sum(1), torch.ones(13, dtype=torch.float64))


def test_a_word_is_the_mean_of_its_tokens(trace) -> None:
    word = regard.text.words.Word("w03 w04", 12, 19, (3, 4))
    torch.testing.assert_close(rollout(trace, [word])[0], rollout(trace, [3, 4]).mean(0))
    torch.testing.assert_close(rollout(trace, ["w03"]), rollout(trace, [3]))


def test_never_more_than_a_band_of_one_layer(trace, monkeypatch) -> None:
    """Every region that is read is a band of rows."""
    read = []
    original = regard.AttentionMap.__getitem__
    monkeypatch.setattr(regard.AttentionMap, "__getitem__", lambda self, at: read.append(at) or original(self, at))
    monkeypatch.setattr(module, "BAND", 6 * 13 * 4)
    rollout(trace, [12])
    assert max(len(at[1]) for at in read) <= 4
    assert len(read[0][1]) == 1  # of the last layer only the asked row


def test_what_is_not_there_is_named(trace) -> None:
    with pytest.raises(regard.RegardError, match="layer 5 is out of range"):
        rollout(trace, layer=5)
    with pytest.raises(regard.RegardError, match="token 13 is out of range"):
        rollout(trace, [13])
    trace.attention = (trace.attention[0].crop(0, slice(0, 13), slice(0, 9)), *trace.attention[1:])
    with pytest.raises(regard.RegardError, match="layer 0 is 13 × 9 for 13 tokens"):
        rollout(trace)
