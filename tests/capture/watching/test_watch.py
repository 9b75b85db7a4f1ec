"""Watching changes nothing, and the weights that it shows are those of float64."""

import copy
import io
import itertools
import json
import math
import random
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.checkpoint import checkpoint

import regard
from regard.capture.watching import watch_mode
from regard.capture.watching.watch import STATISTICS
from regard.errors import RegardError
from tests.support.handwritten import NanoGPT

# PyTorch warns of nested tensors, TorchScript, flex_attention without compiling, and masks of two kinds.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{name}") for name in ("UserWarning", "DeprecationWarning")]


class Module(nn.Module):
    """Calls a function."""

    def __init__(self, function: Callable[..., Any] = F.scaled_dot_product_attention) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def exact(q: Tensor, k: Tensor, mask: Tensor | None = None, causal: bool = False, scale: float | None = None) -> Tensor:
    """Compute the weights in float64."""
    q, k = q.double(), k.double()
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.double()
    return scores.softmax(-1).nan_to_num(0)


def check(right: Tensor, *args: Any, within: float = 2e-7, module: nn.Module | None = None, **kwargs: Any) -> None:
    """Check one call: the output and the random numbers to the bit, the weights within rounding."""
    module = Module() if module is None else module
    torch.manual_seed(1)
    plain = module(*args, **kwargs)
    torch.manual_seed(1)
    with regard.watch(module) as seen:
        watched = module(*args, **kwargs)
    assert torch.equal(plain.nan_to_num(7), watched.nan_to_num(7))
    (call,) = seen.values()
    assert float((call.weights[...].double().reshape(right.shape) - right).abs().max()) <= within, repr(seen)
    assert seen.unrecorded == {}


@settings(max_examples=60)
@given(st.data())
def test_scaled_dot_product_attention_in_all_forms(data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 999)))
    length, size, width = (data.draw(st.integers(1, 7)) for _ in range(3))
    lead = data.draw(st.lists(st.integers(1, 3), max_size=4))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]))
    q, k, v = torch.randn(*lead, length, width), torch.randn(*lead, size, width), torch.randn(*lead, size, 5)
    options: dict[str, Any] = {}
    if len(lead) == 2 and data.draw(st.booleans()):  # grouped heads
        options["enable_gqa"], q = True, torch.randn(lead[0], 2 * lead[1], length, width)
    elif lead and data.draw(st.booleans()):  # the batch broadcasts
        k, v = (torch.randn(1, *t.shape[1:]) for t in (k, v))
    q, k, v = (t.to(dtype) for t in (q, k, v))
    mask_shape = [data.draw(st.sampled_from([1, n])) for n in (*q.shape[:-1], size)]
    kind = data.draw(st.sampled_from([None, "bool", "float", "causal"]))
    mask = (
        torch.rand(*mask_shape) > 0.4
        if kind == "bool"
        else torch.randn(*mask_shape).to(dtype)
        if kind == "float"
        else None
    )
    scale = data.draw(st.sampled_from([None, 0.7]))
    options |= {"dropout_p": data.draw(st.sampled_from([0.0, 0.4])), "scale": scale, "is_causal": kind == "causal"}
    context = data.draw(st.sampled_from([nullcontext, torch.no_grad, torch.inference_mode]))
    right = exact(q, k.expand(*q.shape[: max(0, q.ndim - 3)], *k.shape[-3:]), mask, kind == "causal", scale)
    with context():
        check(right, q, k, v, mask, **options, within=1e-12 if dtype == torch.float64 else 3e-7)


def test_forms_that_are_seldom_drawn() -> None:
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 5)
    nothing = torch.ones(2, 1, 6, 9, dtype=torch.bool)
    nothing[0, :, 2] = False
    check(exact(q, k, nothing), q, k, v, nothing)
    check(exact(q, k[:, :1]), q, k[:, :1], v[:, :1])
    band = torch.ones(6, 9, dtype=torch.bool)
    check(exact(q, k, band.tril(3)), q, k, v, attn_mask=causal_lower_right(6, 9))
    check(exact(q, k, causal=True), q, k, v, attn_mask=causal_upper_left(6, 9))
    with torch.autocast("cpu", torch.bfloat16):
        check(exact(q.bfloat16(), k.bfloat16()), q, k, v)
    jagged = torch.nested.nested_tensor([torch.randn(5, 4, 8), torch.randn(3, 4, 8)], layout=torch.jagged)
    nested = jagged.transpose(1, 2)
    module = Module()
    with regard.watch(module) as seen:
        module(nested, nested, nested)
    for n, text in enumerate(nested.unbind()):
        length = text.shape[1]
        torch.testing.assert_close(seen["Module"].weights[n, :, :length, :length].double(), exact(text, text))


@pytest.mark.parametrize("name", ["vmap", "in_dims", "vmap of vmap", "grad", "vmap of grad", "jvp", "grad of grad"])
def test_transforms_of_functions(name: str) -> None:
    module = Module(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3))
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 5)

    def twice(q: Tensor) -> Tensor:
        (once,) = torch.autograd.grad(module(q, k, v).square().sum(), q, create_graph=True)
        return torch.autograd.grad(once.square().sum(), q)[0]

    calls: dict[str, Callable[[], Tensor]] = {
        "vmap": lambda: torch.vmap(module)(q, k, v),
        "in_dims": lambda: torch.vmap(module, in_dims=(0, None, None))(q, k[0], v[0]),
        "vmap of vmap": lambda: torch.vmap(torch.vmap(module))(q, k, v),
        "grad": lambda: torch.func.grad(lambda q: module(q, k, v).sum())(q),
        "vmap of grad": lambda: torch.vmap(torch.func.grad(lambda q, k, v: module(q, k, v).sum()))(q, k, v),
        "jvp": lambda: torch.func.jvp(lambda q: module(q, k, v), (q,), (q,))[1],
        "grad of grad": lambda: twice(q.clone().requires_grad_()),
    }
    with sdpa_kernel(SDPBackend.MATH):
        plain = calls[name]()
        with regard.watch(module) as seen:
            assert torch.equal(calls[name](), plain)
    right = exact(q, k[:1].expand(2, -1, -1, -1) if name == "in_dims" else k, scale=0.3)
    weights = seen["Module"].weights[...].reshape(right.shape).double()
    torch.testing.assert_close(weights, right, atol=2e-7, rtol=0)


MULTI_HEAD = list(itertools.product(
    (True, False), (True, False), (False, True), (False, True), ((16, 16), (12, 20)), (None, "bool", "float", "3d"),
    (None, "bool", "float"), (False, True), (True, False), (True, False),
))  # fmt: skip


def check_multi_head(
    need: bool, batch_first: bool, bias_kv: bool, zero: bool, dims: tuple[int, int], mask: str | None,
    padding: str | None, train: bool, batched: bool, average: bool,
) -> None:  # fmt: skip
    """Check one nn.MultiheadAttention: output and returned weights to the bit, and the weights against its own."""
    torch.manual_seed(3)
    module = nn.MultiheadAttention(16, 4, dropout=0.3, batch_first=batch_first, add_bias_kv=bias_kv, add_zero_attn=zero,
                                   kdim=dims[0], vdim=dims[1]).train(train)  # fmt: skip
    q, k, v = torch.randn(2, 5, 16), torch.randn(2, 7, dims[0]), torch.randn(2, 7, dims[1])
    if not batched:
        q, k, v = q[0], k[0], v[0]
    elif not batch_first:
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    masks = {"bool": torch.rand(5, 7) > 0.7, "float": torch.randn(5, 7), "3d": torch.randn((1 + batched) * 4, 5, 7)}
    masks["bool"][:, 0] = False
    paddings = {"bool": torch.arange(7) > torch.tensor([[4], [7]]), "float": torch.randn(2, 7)}
    options: dict[str, Any] = {
        "attn_mask": masks.get(mask or ""),
        "need_weights": need,
        "average_attn_weights": average,
    }
    options["key_padding_mask"] = None if padding is None else paddings[padding][slice(None) if batched else 0]
    torch.manual_seed(5)
    plain = module(q, k, v, **options)
    torch.manual_seed(5)
    with regard.watch(module) as seen:
        watched = module(q, k, v, **options)
    assert all((a is None and b is None) or torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    right = module.eval()(q, k, v, **(options | {"need_weights": True, "average_attn_weights": False}))[1]
    weights = seen["MultiheadAttention"].weights[...].reshape(right.shape)
    torch.testing.assert_close(weights, right, atol=0 if need else 3e-7, rtol=0)


@pytest.mark.parametrize("options", random.Random(0).sample(MULTI_HEAD, 40))
def test_multi_head_attention(options: Any) -> None:
    check_multi_head(*options)


@pytest.mark.nightly
def test_multi_head_attention_in_all_combinations() -> None:
    for options in MULTI_HEAD:
        check_multi_head(*options)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_transformers_of_pytorch(mode: str) -> None:
    source, target = torch.randn(2, 10, 64), torch.randn(2, 7, 64)
    causal = nn.Transformer.generate_square_subsequent_mask(10)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, batch_first=True), 2)
    both = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
    cases: list[tuple[nn.Module, tuple[Tensor, ...], dict[str, Any], int]] = [
        (encoder, (source,), {}, 2), (encoder, (source,), {"mask": causal, "is_causal": True}, 2),
        (decoder, (target, source), {}, 4), (both, (source, target), {}, 6),
    ]  # fmt: skip
    for module, args, options, count in cases:
        module.train(mode == "train")
        torch.manual_seed(9)
        plain = module(*args, **options)
        torch.manual_seed(9)
        with regard.watch(module) as seen:
            assert torch.equal(module(*args, **options), plain)
        assert len(seen) == count
        assert seen.notes == []
    assert [path for path, _ in seen][-2:] == ["decoder.layers.1.self_attn", "decoder.layers.1.multihead_attn"]


def test_the_fast_path_that_is_lost_is_noted() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2).eval()
    x, padding = torch.randn(2, 10, 64), torch.arange(10).expand(2, -1) > torch.tensor([[9], [6]])
    with torch.no_grad():
        plain = encoder(x, src_key_padding_mask=padding)
        with regard.watch(encoder) as seen:
            watched = encoder(x, src_key_padding_mask=padding)
    torch.testing.assert_close(watched[~padding], plain[~padding], atol=5e-6, rtol=0)
    assert "fast path" in repr(seen)
    assert float(seen["layers.0.self_attn"].weights[1, :, :, 7:].max()) == 0


@pytest.mark.parametrize("kind", ["plain", "mask", "bias and mask", "softcap"])
def test_flex_attention(kind: str) -> None:
    q, k, v = torch.randn(2, 4, 150, 16), torch.randn(2, 2, 150, 16), torch.randn(2, 2, 150, 16)
    distance = torch.arange(150)[None] - torch.arange(150)[:, None]
    options: dict[str, Any] = {"enable_gqa": True}
    bias = distance * 0.1 * torch.arange(1, 5)[:, None, None] if "bias" in kind else None
    if "bias" in kind:
        options["score_mod"] = lambda s, b, h, i, j: s + (j - i) * 0.1 * (h + 1)
    if kind == "softcap":
        options["score_mod"] = lambda s, b, h, i, j: 5 * torch.tanh(s / 5)
    if "mask" in kind:
        options["block_mask"] = create_block_mask(lambda b, h, i, j: i >= j, None, None, 150, 150, device="cpu")
    right = exact(q, k, bias, causal="mask" in kind)
    if kind == "softcap":
        scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 4
        right = (5 * torch.tanh(scores / 5)).softmax(-1)
    check(right, q, k, v, module=Module(flex_attention), **options, within=1e-6)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_calls_are_seen_once(reentrant: bool) -> None:
    attention = nn.MultiheadAttention(64, 4, batch_first=True)
    module = Module(lambda x: checkpoint(lambda x: attention(x, x, x)[0], x, use_reentrant=reentrant))
    gradients = []
    for context in (nullcontext, lambda: regard.watch(module)):
        x = torch.linspace(-1, 1, 640).view(1, 10, 64).clone().requires_grad_()
        with context() as seen:
            module(x).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)
    assert len(seen) == 1


@pytest.mark.parametrize("when", ["before", "inside", "wrapped", "exported"])
def test_compiled_modules_run_as_they_are_written(when: str) -> None:
    module = nn.Sequential(NanoGPT(), NanoGPT()).eval()
    x = torch.randn(2, 10, 32)
    plain = module(x)

    def made() -> Any:
        return torch.compile(module, backend="eager")

    compiled: Any = {"before": made, "inside": lambda: module, "wrapped": lambda: nn.DataParallel(module),
                     "exported": lambda: torch.export.export(module, (x,)).module()}[when]()  # fmt: skip
    if when == "before":
        compiled(x)
    with regard.watch(compiled) as seen:
        assert torch.equal((made() if when == "inside" else compiled)(x), plain)
    assert list(seen) == [(f"{n}", 0) for n in range(2)] if when != "exported" else len(seen) == 2


def test_records_and_nested_watches_get_each_call_once() -> None:
    module, x = Module(), torch.randn(1, 2, 5, 4)
    with regard.record() as calls, regard.watch(module) as outer, regard.watch() as inner:
        module(x, x, x)
        mine = regard.MultiHeadAttention(d_model=8, heads=2)
        mine(torch.randn(1, 3, 8))
    assert len(calls) == len(inner) == 2
    assert len(outer) == 1  # the other call was made outside its module
    assert torch.equal(calls["module"].weights[...], inner["module"].weights[...])
    assert calls["module"].how == "scaled_dot_product_attention"
    assert inner["mine"].how.startswith("regard.attend")


def test_calls_of_attend_are_seen_as_one() -> None:
    class Ours(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return regard.attend(x, x, x, causal=True).output

    module, x = Ours(), torch.randn(2, 300, 8)
    with regard.watch(module) as seen:
        module(x)
    assert list(seen) == [("Ours", 0)]
    assert seen["Ours"].weights.rule.mask.is_causal
    assert seen.passed_over == []


def test_tensors_that_are_written_to_afterwards() -> None:
    def overwrite(q: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(q, q, q)
        q.zero_()
        return out

    module, x = Module(overwrite), torch.randn(1, 2, 5, 4)
    with regard.watch(module) as seen:
        module(x.clone())
    with pytest.raises(RegardError, match="Module: its tensors changed after the call: watch with copy=True"):
        seen["Module"].weights  # noqa: B018
    with regard.watch(module, copy=True) as seen:
        module(x.clone())
    torch.testing.assert_close(seen["Module"].weights[...].double(), exact(x, x), atol=2e-7, rtol=0)


def test_a_cache_that_grows_is_copied() -> None:
    cache = torch.zeros(1, 2, 4, 3)

    def step(n: int, x: Tensor) -> Tensor:
        cache[:, :, n] = x
        return F.scaled_dot_product_attention(x[:, :, None], cache[:, :, : n + 1], cache[:, :, : n + 1])

    module = Module(step)
    with regard.watch(module) as seen:
        for n in range(3):
            module(n, torch.randn(1, 2, 3))
    torch.testing.assert_close(seen["Module", 0].weights[...], torch.ones(1, 2, 1, 1))
    torch.testing.assert_close(seen["Module", 2].weights[...].sum(-1), torch.ones(1, 2, 1))
    large = torch.randn(3, 1, 2, 8, 4, requires_grad=True).clone()
    alive = weakref.ref(large)
    with regard.watch(other := Module()) as seen:
        other(*large[..., :3])
    del large
    assert alive() is None  # neither the buffer nor its graph is kept
    assert seen["Module"].weights.shape == (1, 2, 8, 8)


def test_errors_of_watching_stay_out_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_mode, "four_axes", lambda *_: 1 / 0)
    module, x = Module(), torch.randn(1, 2, 5, 4)
    error = "not seen: Module: scaled_dot_product_attention: ZeroDivisionError"
    with pytest.raises(RegardError, match=error), regard.watch(module):
        assert module(x, x, x).shape == x.shape


def test_errors_of_the_code_pass_and_what_was_seen_stays() -> None:
    def fails(x: Tensor) -> None:
        F.scaled_dot_product_attention(x, x, x)
        raise KeyError("theirs")

    module = Module(fails)
    with pytest.raises(KeyError, match="theirs"), regard.watch(module) as seen:
        module(torch.randn(1, 2, 5, 4))
    assert len(seen) == 1
    assert torch.overrides._get_current_function_mode_stack() == []


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_nothing_seen_is_an_error_with_reasons() -> None:
    classifier = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1))
    error = r"no attention was computed in the block\n.*test_watch.py:\d+\) passed over"
    with pytest.raises(RegardError, match=error), regard.watch(classifier):
        classifier(torch.randn(2, 4))
    traced = torch.jit.trace(Module(), tuple(torch.randn(3, 1, 2, 5, 4)))
    error = "not seen: the module: TorchScript runs outside Python"
    with pytest.raises(RegardError, match=error), regard.watch(traced):
        traced(*torch.randn(3, 1, 2, 5, 4))
    module = Module()
    with pytest.raises(RegardError, match="Calls in other threads"), regard.watch(module):
        other = threading.Thread(target=module, args=tuple(torch.randn(3, 1, 2, 5, 4)))
        other.start()
        other.join()
    with pytest.raises(RegardError, match=r"watch: got str, expected a torch\.nn\.Module"), regard.watch("model"):  # type: ignore[arg-type]
        pass


def test_what_is_seen_prints_as_a_table() -> None:
    module = nn.Sequential(NanoGPT(), nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), nn.Softmax(-1))
    with regard.watch(module) as seen:
        for _ in range(2):
            module(torch.randn(2, 10, 32))
    lines = repr(seen).splitlines()
    assert lines[0] == "Seen: 4 attention calls"
    assert lines[1].split() == ["path", "how", "weights", "line"]
    assert lines[2].startswith("0, 0            by hand, softmax of q·k       (2, 4, 10, 10)  handwritten.py:")
    assert lines[3].startswith("1.self_attn, 0  scaled_dot_product_attention  (2, 4, 10, 10)  test_watch.py:")
    assert "passed over: it is no factor of a sum of vectors" in lines[6]
    assert len(lines) == 7
    with pytest.raises(KeyError, match=r"'0' made 2 calls: use \('0', 0\) for its first"):
        seen["0"]
    with pytest.raises(KeyError, match="'3' has no recorded call; these have calls: '0', '1.self_attn'"):
        seen["3"]
    assert repr(seen["0", 1]) == "Call('0', 1: softmax(q·k), weights (2, 4, 10, 10))"


def test_contexts_are_left_as_they_were() -> None:
    attention: AbstractContextManager[Any] = regard.watch(Module())
    function = F.scaled_dot_product_attention
    with pytest.raises(RegardError), attention:
        assert F.scaled_dot_product_attention is function
        assert torch.backends.mha.get_fastpath_enabled()


X = torch.linspace(-2, 2, 640).view(2, 10, 32).sin()


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.3, batch_first=True), 2)


def by_hand() -> nn.Module:
    return nn.Sequential(NanoGPT(), nn.Dropout(0.3), NanoGPT())


def train(model: nn.Module, steps: int = 7, passes: int = 1, run: Callable[[Tensor], Tensor] | None = None) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(steps):
        for _ in range(passes):
            (run or model)(X).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            model.eval()(X)  # no step: it trains nothing
        model.train()


@pytest.mark.parametrize("make", [encoder, by_hand])
@pytest.mark.parametrize("passes", [1, 3])
def test_training_stays_the_same_and_passes_that_accumulate_are_one_step(make: Any, passes: int) -> None:
    results, logged = [], list[tuple[int, list[dict[str, Any]]]]()
    for watching in (False, True):
        torch.manual_seed(0)
        model = make()
        block = regard.watch(model, every=3, log=lambda *step: logged.append(step)) if watching else nullcontext()
        with block as seen:
            train(model, passes=passes)
        results.append([*model.parameters(), torch.rand(1)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert [step for step, _ in logged] == [0, 3, 6]
    assert all(len(rows) == 8 for _, rows in logged)
    assert len(seen) == 0  # no map is kept
    assert len(model._forward_hooks) == len(model._forward_pre_hooks) == 0


def means(weights: Tensor, head: int) -> dict[str, float]:
    """Compute a head's statistics in float64."""
    w = weights.double()[:, head]
    i = torch.arange(w.shape[-1])
    distance = (w * (i[:, None] - i).abs()).sum(-1)
    by_query = torch.special.entr(w).sum(-1), w.amax(-1), distance, w[..., 0]
    return {name: float(values.mean()) for name, values in zip(STATISTICS, by_query, strict=True)}


@pytest.mark.parametrize("make", [encoder, by_hand])
def test_rows_are_the_means_of_the_maps(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, file = make(), tmp_path / "attention.jsonl"
    with regard.watch(model, log=file), regard.record() as calls, torch.autocast("cpu", torch.bfloat16):
        train(model, 1)
    assert file.read_bytes().endswith(b"\n")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["step"], row["call"], row["path"], row["head"]) for row in rows] == [
        (0, 0, path, head) for path, _ in calls for head in range(4)
    ]
    for row in rows:
        right = means(calls[row["path"], 0].weights.dense(), row["head"])
        assert {name: row[name] for name in STATISTICS} == pytest.approx(right, abs=2e-3 if make is by_hand else 1e-5)
    with regard.watch(model, log=str(file)):
        train(model, 1)
    assert len(file.read_text().splitlines()) == 2 * len(rows)  # appended


def test_queries_without_keys_and_axes_without_heads() -> None:
    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(32, 32)

        def forward(self, x: Tensor) -> Tensor:
            mask = torch.ones(10, 6, dtype=torch.bool)
            mask[4:] = False
            fused = F.scaled_dot_product_attention(self.q(x)[:, None], x[:, None, :6], x[:, None, :6], mask)
            return fused.nan_to_num(0)[:, 0] + (self.q(x) @ x.mT).softmax(-1) @ x  # (B, L, S): no heads

    model, logged = Cross(), list[list[dict[str, Any]]]()
    with regard.watch(model, log=lambda _, rows: logged.append(rows)):
        train(model, 1)
    with regard.watch(model) as seen, torch.no_grad():
        model(X)
    fused, own = logged[0]
    assert (fused["call"], own["call"], fused["head"], own["head"], fused["distance"]) == (0, 1, None, None, None)
    torch.manual_seed(0)
    assert 0 < fused["first_token"] < 1
    assert fused["entropy"] > 0.5 * math.log(6)  # of the four queries that attend to something
    assert len(seen) == 2


def test_scalars_go_to_a_writer_and_steps_need_no_optimizer() -> None:
    class Writer:
        def __init__(self) -> None:
            self.scalars: dict[tuple[str, int], float] = {}

        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            self.scalars[tag, global_step] = scalar_value

    model, writer = encoder(), Writer()
    with regard.watch(model, every=2, log=writer):
        for _ in range(5):
            model(X).square().mean().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.01 * parameter.grad
    assert len(writer.scalars) == 3 * 2 * 4 * 4
    assert ("layers.1.self_attn/entropy/3", 4) in writer.scalars


def test_without_a_log_the_last_steps_maps_are_kept() -> None:
    model = by_hand()
    with regard.watch(model, every=3, keep=1) as seen:
        train(model)
    assert list(seen) == [("0", 2), ("2", 2)]
    assert seen["0"].weights.shape == (2, 4, 10, 10)
    assert "0, 2  by hand" in repr(seen)
    assert "Only the last 1 calls of each path are kept." in repr(seen)


def test_a_long_block_does_not_grow() -> None:
    model = nn.Sequential(NanoGPT(), nn.Softmax(-1))
    with regard.watch(model, keep=2) as seen:
        for _ in range(20):
            model(X)
    assert list(seen) == [("0", 18), ("0", 19)]
    assert [softmax.path for softmax in seen.passed_over] == ["Sequential"]


def test_compiled_modules_run_compiled_between_the_steps() -> None:
    graphs = []

    def backend(graph: Any, _: Any) -> Any:
        def run(*args: Any) -> Any:
            graphs.append(None)
            return graph(*args)

        return run

    model, logged = by_hand().train(), []
    compiled: Any = torch.compile(model, backend=backend)
    with regard.watch(compiled, every=3, log=lambda step, _: logged.append(step)):
        train(model, run=compiled)
    assert logged == [0, 3, 6]
    assert len(graphs) == 4  # the steps 1, 2, 4 and 5


def test_modules_that_run_in_compiled_code_train_and_are_warned_about_at_the_first_update() -> None:
    model, logged, graphs = by_hand(), list[int](), []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    model.compile(backend=backend)
    with regard.watch(model, every=2, log=lambda step, _: logged.append(step)):
        with pytest.warns(UserWarning, match=r"no pass in training mode.* Pass the compiled module") as warned:
            train(model)
        assert len(warned) == 1
    assert graphs
    assert logged == []


def test_frozen_lazy_and_silent_modules_are_logged() -> None:
    class Silent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.then = nn.LazyLinear(32), encoder()

        def forward(self, x: Tensor) -> None:
            self.output = self.then(self.first(x))

    silent, frozen, head, logged = Silent(), encoder().requires_grad_(False), nn.Linear(32, 1), list[int]()
    with regard.watch(silent, every=1, log=lambda step, _: logged.append(step)):
        train(silent, 3, run=lambda x: silent(x) or silent.output)
    assert logged == [0, 1, 2]
    logged.clear()
    with regard.watch(frozen, every=1, log=lambda step, _: logged.append(step)):
        train(head, 3, run=lambda x: head(frozen(x)))
    assert logged == [0, 1, 2]


def test_copies_and_files_of_the_module_are_not_counted() -> None:
    model, logged = encoder(), []
    with regard.watch(model, every=1, log=lambda step, _: logged.append(step)):
        train(model, 2)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            train(other, 2)
        model.half()
    assert logged == [0, 1]


def test_failing_passes_and_loops_that_train_nothing() -> None:
    model, logged = encoder(), []
    with regard.watch(model, every=1, log=lambda step, _: logged.append(step)):
        with pytest.raises(AssertionError):
            model(torch.randn(2, 10, 31))
        assert torch.overrides._get_current_function_mode_stack() == []
        train(model, 1)
    assert logged == [0]  # the first pass that didn't fail
    with pytest.warns(UserWarning, match="made no pass in training mode"), regard.watch(model, every=1):
        model.eval()(X)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_a_log_that_fails_later_does_not_end_training(tmp_path: Path) -> None:
    model, log = by_hand(), tmp_path / "log.jsonl"
    with regard.watch(model, every=3, log=log):
        train(model, steps=1)
        log.rename(tmp_path / "moved")
        log.mkdir()
        with pytest.warns(UserWarning, match="step 3 wasn't logged"):
            train(model, steps=3)
    assert (tmp_path / "moved").read_text().count("\n") == 8


def test_wrong_arguments_and_modules_without_attention_are_refused_at_once(tmp_path: Path) -> None:
    model = encoder()
    cases: list[tuple[nn.Module | None, dict[str, Any], str]] = [
        (model, {"every": 0}, "keep and every must be whole numbers of 1 or more"),
        (model, {"keep": 0}, "keep and every must be whole numbers of 1 or more"),
        (None, {"every": 2}, "every needs a module, and no interventions"),
        (model, {"every": 2, "interventions": [regard.ablate("layers.0", head=1)]}, "and no interventions"),
        (model, {"log": 3}, "log: got int, expected a path, a SummaryWriter or a function"),
        (model, {"log": tmp_path / "no" / "folder.jsonl"}, "log can't be written: .*No such file"),
    ]
    for module, options, error in cases:
        with pytest.raises(RegardError, match=error), regard.watch(module, **options):
            raise AssertionError
    classifier, passes = nn.Sequential(nn.Linear(32, 4), nn.Softmax(-1)), []
    classifier.register_forward_hook(lambda *_: passes.append(None))
    with pytest.raises(RegardError, match=r"no attention .*\n.*passed over"), regard.watch(classifier, log=print):
        train(classifier)
    assert len(passes) == 1
