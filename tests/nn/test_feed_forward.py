"""The feed-forward part of a layer, against its formula."""

from typing import Any

import pytest
import torch

from regard.nn import feed_forward
from regard.nn.feed_forward import FeedForward


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", feed_forward.ACTIVATIONS)
def test_long_texts_in_parts_have_the_same_vectors(activation: str, gated: bool, monkeypatch: Any) -> None:
    part, x = FeedForward(6, 10, activation=activation, gated=gated), torch.randn(2, 53, 6)
    act = feed_forward.ACTIVATIONS[activation]
    with torch.no_grad():
        hidden = act(part.up(x)) if part.gate is None else act(part.gate(x)) * part.up(x)
        expected = part.output(hidden)
        torch.testing.assert_close(part(x), expected)
        monkeypatch.setattr(feed_forward, "LONGEST", 7)
        lengths: list[int] = []
        part.up.register_forward_hook(lambda _module, args, _output: lengths.append(args[0].shape[-2]))
        calls: list[int] = []
        part.output.register_forward_hook(lambda *_: calls.append(1))
        torch.testing.assert_close(part(x), expected)
    assert lengths == [7] * 7 + [4]
    assert calls == [1]  # who watches the output sees all of it
    part(x).sum().backward()
    assert lengths[-1] == 53
