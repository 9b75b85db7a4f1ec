"""The record: who looks sees every call, by its path and number; nobody else pays."""

import threading

import pytest
import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import statistics
from regard.attention.recording import hooked_calls, open_hook, open_records, scope
from tests.attention.cases import random


def call(**options: object) -> regard.Attention:
    query = random(0, 1, 2, 5, 3).requires_grad_()
    return regard.attend(query, query, query, **options)


def test_calls_by_path_and_number() -> None:
    with regard.record() as calls:
        with scope("encoder"):
            with scope("layer.3"):
                first = call()
                call(causal=True)
            with scope("layer.4"):
                call()
        call()
    call()
    assert list(calls) == [("encoder.layer.3", 0), ("encoder.layer.3", 1), ("encoder.layer.4", 0), ("", 0)]
    seen = calls["encoder.layer.3", 0]
    assert (seen.path, seen.nth, seen.layer, seen.kernel) == ("encoder.layer.3", 0, 3, first.kernel)
    assert torch.equal(seen.weights.dense(), first.weights.dense())
    assert calls["encoder.layer.3", 1].weights[0, 0, 0, 1] == 0
    assert calls["", 0].layer is None


def test_what_is_kept_is_detached() -> None:
    with regard.record(keep=("value", "output", "logsumexp")) as calls:
        result = call()
    kept = calls["", 0]
    for tensor in (kept.value, kept.output, kept.logsumexp, kept.weights.query, kept.weights.key):
        assert tensor is not None
        assert not tensor.requires_grad
    assert torch.equal(kept.output, result.output)
    assert torch.equal(kept.logsumexp, result.logsumexp)
    assert not kept.weights.dense(differentiable=True).requires_grad


def test_layers_that_are_not_wanted_are_counted_all_the_same() -> None:
    with regard.record(layers=[1]) as calls:
        for path in ("h.0", "h.1", "h.0", "h.1", "other"):
            with scope(path):
                call()
    assert list(calls) == [("h.1", 0), ("h.1", 1)]


def test_records_nest_and_close_after_an_error() -> None:
    with regard.record() as outer:
        with pytest.raises(KeyError), regard.record() as inner, scope("a"):
            call()
            raise KeyError
        call()
    assert list(inner) == [("a", 0)]
    assert list(outer) == [("a", 0), ("", 0)]
    assert open_records.get() == ()


def test_another_thread_is_not_seen() -> None:
    with regard.record() as calls:
        other = threading.Thread(target=call)
        other.start()
        other.join()
        assert not calls


def test_keep_names_what_it_can() -> None:
    with pytest.raises(ValueError, match="record: keep: got 'scores', expected one of value, output, logsumexp"):
        regard.record(keep=("value", "scores")).__enter__()


def test_a_record_asks_for_statistics_of_the_calls_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    query = random(0, 1, 2, 13, 8, dtype=torch.float32)
    with regard.record(layers=[1], statistics=regard.Statistics(top=3, pooled=None)) as calls:
        for layer in range(2):
            with scope(f"layer.{layer}"):
                given = regard.attend(query, query, query, causal=True)
                assert (given.weights._known is not None) == (layer == 1)
    (call,) = calls.values()
    right = call.weights.crop(0, slice(None, 12), slice(None)).statistics()  # rows are left out: computed anew
    monkeypatch.setattr(statistics, "compute", None)
    torch.testing.assert_close(call.weights.entropy()[0, :, :12], right.entropy)
    torch.testing.assert_close(call.weights.top(2)[0][0, :, :12], right.values[..., :2])
    with pytest.raises(TypeError):  # the picture was not asked for
        call.weights.pooled(2, 2)
    assert call.weights.crop(0, slice(None), slice(None)).received().shape == (2, 13)


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
        assert open_hook.get() is hook
        output = regard.attend(query, key, value).output
    plain = regard.attend(query, key, value).output
    torch.testing.assert_close(output, 2 * plain.detach())
    assert hook.seen[0].requires_grad  # the very query, of its graph
    assert hook.seen[0].shape == (1, 1, 3, 5)
    assert not output.requires_grad
    assert plain.requires_grad  # outside the block nothing is changed
