"""The feed-forward part of a layer, against its formula."""

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from regard.nn import layer
from regard.nn.layer import FeedForward


class Largest(TorchFunctionMode):
    """Keeps how many numbers the largest tensor has that an operation gives."""

    elements = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.elements = max(self.elements, result.numel())
        return result


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", layer.ACTIVATIONS)
def test_long_texts_in_parts_have_the_same_vectors(activation: str, gated: bool, monkeypatch: Any) -> None:
    part, x = FeedForward(6, 10, activation=activation, gated=gated), torch.randn(2, 53, 6)
    act = layer.ACTIVATIONS[activation]
    with torch.no_grad():
        hidden = act(part.up(x)) if part.gate is None else act(part.gate(x)) * part.up(x)
        expected = part.output(hidden)
        torch.testing.assert_close(part(x), expected)
        monkeypatch.setattr(layer, "LONGEST", 7)
        lengths: list[int] = []
        part.up.register_forward_hook(lambda _module, args, _output: lengths.append(args[0].shape[-2]))
        with Largest() as seen:
            torch.testing.assert_close(part(x), expected)
        assert seen.elements == max(x.numel(), 2 * 7 * 10)  # never the hidden vectors of all
        assert lengths == [7] * 7 + [4]
        calls: list[int] = []
        part.output.register_forward_hook(lambda *_: calls.append(1))
        torch.testing.assert_close(part(x), expected)
    assert calls == [1]  # who watches the output sees all of it
    part(x).sum().backward()
    assert lengths[-1] == 53
