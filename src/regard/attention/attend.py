"""Compute attention and give access to its weights. All attention in regard goes through `attend`.

    scores  = softcap(scale · query @ keyᵀ) + bias, -inf where masked
    weights = softmax(scores), where a sink joins the denominator only
    output  = weights @ value

Source: Vaswani et al. 2017, "Attention Is All You Need". `reference.py` computes the same step by step in float64. Here
a fast kernel computes the output. `Attention.weights` computes only the regions you read, so no L × S tensor exists.

`attend` checks its arguments (`arguments.py`), lets a kernel compute the call (`kernels/dispatch.py`; with ablations,
`ablated_call.py` does), and passes the detached call to the enclosing `record` blocks (`recording.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.ablated_call import ablations_of_call
from regard.attention.ablation import Ablation, open_blocks
from regard.attention.arguments import check_attention_dropout, four_axes, score_rule
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch
from regard.attention.map_statistics import Statistics
from regard.attention.masks import Mask
from regard.attention.recording import current_call_path, open_hook, open_records, wanted_statistics
from regard.shown import short_repr

TORCH_NAMES = {  # arguments of PyTorch's attention, and what to pass instead
    "is_causal": "use causal=, which places the last query at the last key (offset=0 for PyTorch's placement)",
    "attn_mask": "use mask= for a boolean mask (True means may attend) or bias= for a mask that is added",
    "key_padding_mask": "use mask=~key_padding_mask[:, None, None, :] (True means may attend)",
    "dropout_p": "use dropout=",
    "enable_gqa": "leave it out: key and value may have fewer heads than query",
    "num_heads": "pass query, key and value as (B, H, L, D), or use regard.MultiHeadAttention",
}


def attend(
    query: Float[Tensor, "*B L D"],
    key: Float[Tensor, "*G S D"],
    value: Float[Tensor, "*G S E"],
    *,
    mask: Bool[Tensor, "..."] | Mask | None = None,
    bias: Float[Tensor, "..."] | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    offset: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, " H"] | None = None,
    dropout: float = 0.0,
    statistics: bool | Statistics = False,
    **torch_names: None,
) -> "Attention":
    """Compute exact scaled dot-product attention and give access to its weights.

    Shapes: query (B, H, L, D), key (B, G, S, D), value (B, G, S, E) with H a multiple of G. Tensors with three axes
    have no batch axis, tensors with two axes have no head axis either. scores = scale · query·key → softcap → + bias →
    mask; sinks join the softmax's denominator only.

    Args:
        mask: boolean, broadcastable to (B, H, L, S), True means "may attend"; or a `regard.masks` specification.
        bias: additive, broadcastable to (B, H, L, S).
        causal: a query attends to keys at its own and earlier positions.
        window: (left, right), inclusive. None leaves a side open.
        offset: position of query 0 among the keys. Default: the last query is at the position of the last key.
        scale: factor of query · key. Default: 1 / sqrt(D).
        softcap: scores become softcap · tanh(scores / softcap).
        sinks: one learned score per head, which receives attention but has no value vector.
        dropout: probability of dropping a weight from the output. `.weights` are before dropout.
        statistics: True, or a `regard.Statistics`: compute these with the output, for `.weights.statistics()`,
            `.top(8)`, `.received()` and others. From 2^20 scores on, this takes half to two thirds of the time of
            computing them later, on a CPU.
        torch_names: PyTorch's names for other arguments. Each raises a TypeError that names the argument to use.

    Inside `ablating` blocks (`regard.attention.ablation`), ablated edges have weight 0, and the output of an ablated
    head is 0. Inside `record` blocks, the call is recorded.

    Inside torch.compile, results are the same. The graph breaks here, because tracing wouldn't speed up the kernels,
    and continues afterwards. `fullgraph=True` therefore raises an error that gives this reason.

    Raises:
        TypeError, ValueError: an argument is wrong. The message gives its name, its value and the expected value.
    """
    for name in torch_names:
        hint = TORCH_NAMES.get(name)
        raise TypeError(f"{name}: {hint}" if hint else f"attend() got an unexpected keyword argument {name!r}")
    options: dict[str, Any] = {"mask": mask, "bias": bias, "causal": causal, "window": window, "offset": offset,
                               "scale": scale, "softcap": softcap, "sinks": sinks}  # fmt: skip
    if torch.compiler.is_compiling():
        return _outside_the_graph()(query, key, value, dropout=dropout, statistics=statistics, **options)
    ndim = query.ndim if isinstance(query, Tensor) else 0
    query, key, value = four_axes(query, key, value)
    hook = open_hook.get()
    if hook is not None:
        query, key, value = hook.before(query, key, value)
    rule, offset = score_rule(query, key.shape[2], **options)
    if type(dropout) is not float or dropout != 0.0:
        check_attention_dropout(dropout)
    wanted = Statistics.of(statistics) or wanted_statistics()
    ablations: tuple[Ablation, ...] = ()
    if blocks := open_blocks.get():
        ablated = ablations_of_call(blocks, current_call_path(), (*query.shape[:3], key.shape[2]), key.shape[1])
        ablations = ablated.ablations
        query, key, value, rule, result = ablated.run(query, key, value, rule, dropout, wanted, offset)
    else:
        result = dispatch.compute_with_statistics(query, key, value, rule, dropout, wanted, offset)
    output, logsumexp, kernel = result.output, result.logsumexp, result.kernel
    computed: dict[str, Any] = {"row_max_sum": result.row_max_sum, "known": result.statistics}
    weights = AttentionMap(query, key, rule, offset=offset, ndim=ndim, **computed)
    if records := open_records.get():
        recorded = weights
        if any(t is not None and t.requires_grad for t in (query, key, rule.bias, rule.sinks)):
            detached = query.detach(), key.detach(), rule.detached()
            recorded = AttentionMap(*detached, offset=offset, ndim=ndim, **computed)
        for calls in records:
            calls.add(current_call_path(), kernel, recorded, ablations, value=value, output=output, logsumexp=logsumexp)
    if hook is not None:
        output = hook.after(weights, value, output)
    if ndim < 4:
        output = output.reshape(output.shape[4 - ndim :])
        logsumexp = logsumexp.reshape(logsumexp.shape[4 - ndim :])
    return Attention(output, logsumexp.detach(), weights, kernel)


def _outside_the_graph() -> Callable[..., "Attention"]:
    """Return an `attend` that torch.compile skips. It is created on first use: importing the compiler takes seconds."""
    if not _uncompiled:
        _uncompiled.append(torch.compiler.disable(attend, reason="attend runs its kernels as they are"))
    return _uncompiled[0]


_uncompiled: list[Callable[..., "Attention"]] = []


@dataclass(frozen=True, eq=False)
class Attention:
    """The output and weights of an attention call, as `attend` returns them.

    output (B, H, L, E) carries gradients; logsumexp (B, H, L) and weights (B, H, L, S, lazy) don't. If the inputs have
    fewer axes, so do these. kernel: the name of the kernel that computed the output.
    """

    output: Float[Tensor, "..."]
    logsumexp: Float[Tensor, "..."]
    weights: AttentionMap
    kernel: str
    __repr__ = short_repr

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """Return which queries can attend to a key, (B, H, L). The others have output 0, and a sink gets all attention.

        Only mask and bias matter: a query that contains NaN is valid, and its output and weights are NaN.
        """
        finite = self.logsumexp.isfinite()
        if self.weights.rule.sinks is None and bool(finite.all()):  # every query has at least one allowed key
            return finite
        return self.weights.valid
