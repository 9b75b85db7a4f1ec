"""Observe attention calls as they are computed, with a function mode that runs each function unchanged.

Outputs, gradients and random numbers stay bit for bit the same, except for calls with ablations. For each call, the
mode keeps a lazy map, computed from query and key if the call has them, else from the weights that the program
computed.
"""

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from regard.attention.ablated_call import CallAblations, ablations_of_call
from regard.attention.ablation import Ablation, HeadAblation, open_blocks
from regard.attention.arguments import score_rule
from regard.attention.attention_map import HELPS, AttentionMap
from regard.attention.masks import Edges
from regard.attention.recording import LazyMap, open_records
from regard.attention.scores import ScoreRule
from regard.capture.watching import call_sites
from regard.capture.watching.call_sites import Site, outside_transforms, without_transforms
from regard.capture.watching.seen import WatchedCalls
from regard.capture.watching.softmax_tracker import FOLLOWED, PREPARED, Layout, Softmax, SoftmaxTracker, Track
from regard.errors import RegardError
from regard.memory import require_memory

SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
CLOSED = re.compile("flash_attn|memory_efficient_attention|sageattn|varlen_attn|paged_attention")
ONLY_WATCHED = "calls of nested tensors and inside transforms of torch.func can be watched, not ablated"
ROUNDING = 1e-3  # allowed difference of a row's sum from 1
SLOW_PATH = (
    "Note: without gradients PyTorch computes nn.TransformerEncoder and nn.MultiheadAttention by a fast path, which is"
    " off while watching. Outputs differ by rounding, and padded positions are computed instead of set to 0."
)


class WatchMode(TorchFunctionMode):
    """Watch one block. seen: the recorded calls. error: the first error of an ablation or `WatchedCalls.on_call`."""

    def __init__(self, seen: WatchedCalls, *, copy: bool = False) -> None:
        super().__init__()
        self.seen = seen
        self.error: RegardError | None = None
        self._sites, self._copy = seen.sites, copy
        self._tracker = SoftmaxTracker(seen.sites, self._claim_weights)
        self._heads: int | None = None  # of the running nn.MultiheadAttention
        self._multi_head_attention = call_sites.multi_head_attention_in_steps(
            lambda *args, **kwargs: self._see_sdpa(functional.scaled_dot_product_attention, args, kwargs)
        )

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function unchanged and inspect its result."""
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "").partition(".")[0]  # exported graphs call "softmax.int"
        if name == "scaled_dot_product_attention":
            return self._see_sdpa(function, args, kwargs)
        if function is functional.multi_head_attention_forward:
            return self._see_multi_head(args, kwargs)
        track = None
        if name in PREPARED:
            prepared = self._observe(name, self._tracker.prepare, name, args, kwargs)
            args, kwargs, track = prepared or (args, kwargs, None)
        result = function(*args, **kwargs)
        if track is not None:
            self._tracker.note(result, track)
        elif name in FOLLOWED and name not in PREPARED:
            self._observe(name, self._tracker.follow, function, name, args, kwargs, result)
        elif name == "flex_attention" and len(args) > 5:  # the operator, not the function of this name
            self._observe(name, self._keep_flex, result, *args[:6])
        elif CLOSED.search(name) and (site := self._sites.find()) is not None:
            self.seen.unrecorded[site.path] = f"{name} keeps its queries and keys to itself"
        return result

    def finish(self) -> None:
        """List the softmaxes of the watched block that aren't attention."""
        self.seen.passed_over = [softmax for softmax in self._tracker.softmaxes.values() if not softmax.claimed]

    def _observe(self, name: str, look: Callable[..., Any], *args: Any) -> Any:
        """Inspect a call. Errors are collected and don't reach the watched code."""
        try:
            return look(*args)
        except Exception as error:  # the watched code may do anything
            if isinstance(error, RegardError) and (open_blocks.get() or self.seen.on_call):
                self.error = self.error or error
            site = self._sites.find() or Site(name, "")
            self.seen.unrecorded.setdefault(site.path, f"{name}: {type(error).__name__}: {error}")

    def _see_multi_head(self, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run nn.MultiheadAttention's code so that its inner calls are seen."""
        before, self._heads = self._heads, args[4] if len(args) > 4 else kwargs["num_heads"]
        by_hand = kwargs.get("need_weights", args[15] if len(args) > 15 else True)
        if not torch.is_grad_enabled() and not kwargs.get("training", args[13] if len(args) > 13 else True):
            self.seen.note(SLOW_PATH)
        try:
            with self if by_hand else nullcontext():
                result = self._multi_head_attention(*args, **kwargs)
        finally:
            self._heads = before
        output: Tensor = result[0]  # the output of a linear map
        self._tracker.note(output, Track("scores", (*[None] * (output.ndim - 1), "learned"), learned=True))
        return result

    def _see_sdpa(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        site = self._sites.find()
        if site is None:
            return function(*args, **kwargs)
        named = {"attn_mask": None, "dropout_p": 0.0, "is_causal": False, "scale": None}
        named |= dict(zip(SDPA, args, strict=False)) | kwargs
        ablated = self._observe(function.__name__, self._ablated_sdpa, site, named) if open_blocks.get() else None
        if ablated is not None:
            return ablated
        output = function(*args, **kwargs)
        self._observe(function.__name__, self._keep_sdpa, site, named, output)
        return output

    def _ablated_sdpa(self, site: Site, named: dict[str, Any]) -> Tensor | None:
        """Compute a call with the ablations of the enclosing blocks. None if no ablation applies."""
        query, value = named["query"], named["value"]
        if query.is_nested:
            raise RegardError(f"{site.path}: {ONLY_WATCHED}")
        (q, k, v, mask), ndim = four_axes(query, named["key"], value, named["attn_mask"])
        ablations = ablations_of_call(open_blocks.get(), site.path, (*q.shape[:3], k.shape[2]), k.shape[1])
        if not ablations.ablations:
            return None
        if call_sites.in_transform():
            raise RegardError(f"{site.path}: {ONLY_WATCHED}")
        if torch.is_autocast_enabled(q.device.type):
            q, k, v = (tensor.to(torch.get_autocast_dtype(q.device.type)) for tensor in (q, k, v))
        rule, offset = torch_rule(q, k, mask, named)
        q, k, v, rule, result = ablations.run(q, k, v, rule, named["dropout_p"], None, offset)
        weights = AttentionMap(q, k, rule, offset=offset, ndim=ndim)
        self._add_call(site, "sdpa", weights, v, result.output, ablations.ablations)
        return result.output.reshape(*query.shape[:-1], value.shape[-1])

    @outside_transforms()
    def _keep_sdpa(self, site: Site, named: dict[str, Any], output: Tensor) -> None:
        q, k, v, mask = (named[name] for name in SDPA[:4])
        if type(mask).__name__ == "CausalBias":  # of torch.nn.attention.bias
            mask = mask._materialize(q.device)
        if q.is_nested:
            lengths = torch.tensor([text.shape[-2] for text in k.unbind()], device=q.device)
            q, k, v = (torch.nested.to_padded_tensor(tensor, 0.0) for tensor in (q, k, v))
            mask = (torch.arange(k.shape[-2], device=q.device) < lengths[:, None])[:, None, None]
        (q, k, v, mask), ndim = four_axes(q, k, v, mask)
        q, k = (tensor.to(output.dtype) for tensor in (q, k))  # like autocast
        snapshots = [self._snapshot(tensor) for tensor in (q, k, mask) if tensor is not None]
        settings = {name: named[name] for name in ("is_causal", "scale")}  # `named` would keep all tensors alive

        def make() -> AttentionMap:
            query, key, *masks = snapshots
            rule, offset = torch_rule(query, key, masks[0] if masks else None, settings)
            return AttentionMap(query, key, rule, offset=offset, ndim=ndim)

        weights = LazyMap(site.path, (*q.shape[:3], k.shape[2])[4 - ndim :], snapshots, make)
        self._add_call(site, "sdpa", weights, v, without_transforms([output])[0])

    @outside_transforms()
    def _keep_flex(self, result: Any, q: Tensor, k: Tensor, v: Tensor, score: Any, mask: Any, scale: float) -> None:
        site = self._sites.find()
        if site is None:
            return
        if ablations_of_call(open_blocks.get(), site.path, (*q.shape[:3], k.shape[2]), k.shape[1]).ablations:
            raise RegardError(f"{site.path}: flex_attention can be watched but not ablated")
        q, k = self._snapshot(q), self._snapshot(k)

        def make() -> AttentionMap:
            """Compute all weights, because the score function may be arbitrary."""
            wide = torch.promote_types(q.dtype, torch.float32)
            require_memory(3 * q.shape[1] * k.shape[2] * q.shape[2] * wide.itemsize, q.device, "flex_attention", HELPS)
            scores = q.to(wide) @ k.to(wide).repeat_interleave(q.shape[1] // k.shape[1], 1).mT * scale
            scores = _for_each_score(score, q, k, scores).masked_fill(~_for_each_score(mask[-1], q, k), -torch.inf)
            return AttentionMap.of_weights(scores.softmax(-1).nan_to_num(0.0))

        weights = LazyMap(site.path, (*q.shape[:3], k.shape[2]), [q, k], make)
        self._add_call(site, "flex", weights, v, result[0] if isinstance(result, tuple) else result)

    def _claim_weights(
        self, softmax: Softmax, weights: Tensor, undropped: Tensor | None, value: Tensor, layout: Layout
    ) -> Tensor:
        """Record hand-written attention weights and return them with ablations applied."""
        new, plain, heads = weights, weights if undropped is None else undropped, self._heads
        if blocks := open_blocks.get():
            if softmax.ablations is None:
                shape = AttentionMap.of_weights(layout.as_map(weights, heads)).full_shape
                softmax.ablations = ablations_of_call(blocks, softmax.path, shape, shape[1])
            if softmax.ablations.ablations:
                if call_sites.in_transform():
                    raise RegardError(f"{softmax.path}: {ONLY_WATCHED}")
                new, plain = ablated_weights(softmax.ablations, softmax.path, weights, plain, layout, heads)
        if not softmax.claimed:
            softmax.claimed = True
            with outside_transforms():
                plain, value = without_transforms([plain, value])
                snapshot, site = self._snapshot(plain), Site(softmax.path, softmax.where)
                ablations = softmax.ablations.ablations if softmax.ablations else ()
                shown = layout.as_map(snapshot, heads)
                source = LazyMap(site.path, shown.shape, [snapshot], lambda: AttentionMap.of_weights(shown))
                self._add_call(site, softmax.kernel, source, value, None, ablations)
        return new

    def _snapshot(self, tensor: Tensor) -> Tensor:
        """Return a tensor to keep: detached, and copied if it is part of a larger tensor such as a cache."""
        tensor = without_transforms([tensor])[0].detach()
        part = tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()
        return tensor.clone(memory_format=torch.contiguous_format) if self._copy or part else tensor

    def _add_call(
        self, site: Site, kernel: str, weights: AttentionMap | LazyMap, value: Tensor, output: Tensor | None,
        ablations: tuple[Ablation, ...] = (),
    ) -> None:  # fmt: skip
        """Add a call to `seen`. Among nested watches, the innermost also adds it to the enclosing records."""
        records, tensors = open_records.get(), {"value": self._snapshot(value), "output": output}
        innermost = next((calls for calls in reversed(records) if isinstance(calls, WatchedCalls)), None) is self.seen
        for calls in (self.seen, *(calls for calls in records if innermost and not isinstance(calls, WatchedCalls))):
            calls.add(site.path, kernel, weights, ablations, site.where, **tensors)


def torch_rule(q: Tensor, k: Tensor, mask: Tensor | None, named: dict[str, Any]) -> tuple[ScoreRule, int | None]:
    """Return the score rule and offset for PyTorch's attn_mask, is_causal and scale."""
    causal, boolean = bool(named["is_causal"]), mask is not None and mask.dtype == torch.bool
    return score_rule(
        q, k.shape[2], mask=mask if boolean else None, bias=None if boolean else mask, causal=causal,
        window=None, offset=0 if causal else None, scale=named["scale"], softcap=None, sinks=None,
    )  # fmt: skip


def four_axes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Any, int]:
    """Return query, key, value and mask of `scaled_dot_product_attention` with 4 axes, and their original number.

    Extra leading axes are merged into the batch axis. Heads and batches of size 1 are expanded if they broadcast.
    """
    masks = [] if mask is None else [mask[(None,) * (q.ndim - mask.ndim)]]
    tensors = without_transforms([q, k, v, *masks])
    ndim, tensors = min(4, tensors[0].ndim), [tensor[(None,) * (4 - tensor.ndim)] for tensor in tensors]
    lead = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in tensors[:3]))
    key_heads = max(tensors[1].shape[-3], tensors[2].shape[-3])
    heads = (max(key_heads, tensors[0].shape[-3]), key_heads, key_heads)
    result = [t.expand(*lead, n, *t.shape[-2:]).flatten(0, -4) for t, n in zip(tensors, heads, strict=False)]
    for mask in tensors[3:]:
        alone = all(size == 1 for size in mask.shape[:-3])
        result.append((mask if alone else mask.expand(*lead, *mask.shape[-3:])).flatten(0, -4))
    return (*result, *[None] * (4 - len(result))), ndim


def _for_each_score(function: Callable[..., Tensor], q: Tensor, k: Tensor, *scores: Tensor) -> Tensor:
    """Call flex_attention's function of (score, batch, head, query, key) for all scores."""
    for axis in reversed(range(4)):
        mapped = tuple(0 if axis == other else None for other in range(4))
        function = torch.vmap(function, (0,) * len(scores) + mapped)
    return function(*scores, *(torch.arange(size, device=q.device) for size in (*q.shape[:3], k.shape[2])))


def ablated_weights(
    ablations: CallAblations, path: str, weights: Tensor, plain: Tensor, layout: Layout, heads: int | None
) -> tuple[Tensor, Tensor]:
    """Apply ablations to hand-written attention weights. Returns (weights to multiply by, weights to show).

    plain: the weights before dropout. The weight of an ablated edge is distributed over the rest of its row. This
    includes a sink, the part that the row lacks to sum to 1. An ablated head has weights 0 but is shown unchanged.

    Raises:
        RegardError: something is patched, or edges are ablated in rows that don't come from a softmax.
    """
    heads_alone = all(isinstance(change, HeadAblation) for change in ablations.outputs)
    if ablations.values or ablations.weights or not heads_alone:
        raise RegardError(f"{path}: its attention is hand-written, so it can be ablated but not patched")
    maps = [layout.as_map(tensor, heads) for tensor in (weights, plain)]
    new, shown = (tensor[(None,) * (4 - tensor.ndim)] for tensor in maps)
    batch, rows, queries, keys = (slice(0, size) for size in new.shape)
    for edges in ablations.removed:
        mask = edges.tile(batch, rows, queries, keys, new.device)
        assert mask is not None
        sums = shown.sum(-1, keepdim=True)
        if bool((sums > 1 + ROUNDING).any() | (shown < 0).any()):
            raise RegardError(f"{path}: its weights don't come from a softmax, so its edges can't be ablated")
        lacking = torch.where(sums < 1 - ROUNDING, 1 - sums, 0)  # ignores rounding errors, which aren't a sink
        cut = shown.masked_fill(mask, 0.0)
        rest = cut.sum(-1, keepdim=True) + lacking
        factor = torch.where(mask.any(-1, keepdim=True), (sums + lacking) / torch.where(rest == 0, 1.0, rest), 1.0)
        shown, new = cut * factor, new.masked_fill(mask, 0.0) * factor
    for head in ablations.outputs:  # all its edges
        mask = Edges((*new.shape,), head.batch, head.heads).tile(batch, rows, queries, keys, new.device)  # type: ignore[arg-type]
        assert mask is not None
        new = new.masked_fill(mask, 0.0)
    return layout.as_factor(new, weights), layout.as_factor(shown, weights) if ablations.removed else plain
