"""A hook around attention calls: what it sees, and what it may change."""

import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.call_hook import current_hook, hooked_calls


class Watching:
    """Keeps what it sees, computes without gradients, and doubles the output."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def before(self, query, key, value):
        self.seen += [query, key, value]
        return query.detach(), key.detach(), value.detach()

    def after(self, weights, value, output):
        assert isinstance(weights, AttentionMap)
        self.seen += [value, output]
        return 2 * output


def test_it_sees_the_tensors_themselves_and_replaces_the_output() -> None:
    query = torch.randn(3, 5, requires_grad=True)
    key, value = torch.randn(7, 5), torch.randn(7, 2)
    hook = Watching()
    with hooked_calls(hook):
        assert current_hook() is hook
        output = regard.attend(query, key, value).output
    plain = regard.attend(query, key, value).output
    torch.testing.assert_close(output, 2 * plain.detach())
    assert hook.seen[0].requires_grad  # the very query, of its graph
    assert hook.seen[0].shape == (1, 1, 3, 5)
    assert not output.requires_grad
    assert plain.requires_grad  # outside the block nothing is changed


def test_the_innermost_counts() -> None:
    outer, inner = Watching(), Watching()
    x = torch.randn(3, 5)
    with hooked_calls(outer):
        with hooked_calls(inner):
            regard.attend(x, x, x)
        assert current_hook() is outer
    assert (len(outer.seen), len(inner.seen)) == (0, 5)
    assert current_hook() is None
