"""Call PyTorch's fused CPU kernel, which `scaled_dot_product_attention` uses, and avoid its errors.

It supports one additive mask tensor or a causal flag. It has these errors: it crashes without queries or keys, misreads
a query that isn't contiguous in its last dimension, and returns logsumexp 0 for a fully masked row or a row of up to 15
keys whose scores are all NaN. With an additive mask, NaN in a masked key spreads to the queries.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import blockwise
from regard.attention.map_statistics import KernelResult
from regard.attention.scores import ScoreRule

MASK_LIMIT = 1 << 22  # largest number of scores for which the mask is computed as a tensor (16 MiB)


def fits(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float, causal: bool) -> bool:
    """Return whether the kernel computes this call correctly.

    It needs D == E, at least one query and key, and no gradient of a bias. Half precision isn't used, because its
    logsumexp is off by 5e-5.

    causal: whether the rule's mask is causal in the kernel's sense (key j <= query i and L <= S).
    """
    if query.device.type != "cpu" or query.dtype not in (torch.float32, torch.float64) or dropout > 0:
        return False
    if rule.softcap is not None or rule.sinks is not None:
        return False
    if query.shape[-1] != value.shape[-1] or 0 in query.shape or 0 in key.shape:
        return False
    if rule.bias is not None and (rule.bias.requires_grad or rule.bias.dtype != query.dtype):
        return False
    if rule.bias is None and (rule.mask is None or causal):
        return True
    # Ablated edges may need one L × S mask per text or head. Masks passed by the caller are already that large.
    matrices, removed = 1, () if rule.mask is None else rule.mask.removed
    for axis, name in enumerate(("batch", "heads")):
        matrices *= query.shape[axis] if any(getattr(edges, name) is not None for edges in removed) else 1
    return matrices * query.shape[2] * key.shape[2] <= MASK_LIMIT


def forward(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    causal: bool,
) -> KernelResult:
    """Compute output and logsumexp of a call that `fits`. Gradients flow to the output.

    If a score is NaN or infinite, the blockwise kernel computes the call.

    query, key, value, rule: of the call. causal: as in `fits`.
    """
    query, key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (query, key, value))
    length, size = query.shape[2], key.shape[2]
    causal = causal and rule.bias is None
    additive: Tensor | None = None
    if rule.mask is not None and not causal:
        allowed = rule.mask.materialise(query.shape[0], query.shape[1], length, size, query.device)
        additive = torch.zeros(allowed.shape, dtype=query.dtype).masked_fill_(~allowed, -torch.inf)
    if rule.bias is not None:
        additive = rule.bias if additive is None else additive + rule.bias
    if additive is not None:
        additive = additive.expand(-1, -1, length, size)
    output, logsumexp = torch._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p=0.0, is_causal=causal, attn_mask=additive, scale=rule.scale
    )
    # This needs only B · H · L numbers: logsumexp is 0 for rows without a score above -inf, and NaN for rows with a NaN
    # score. NaN is correct unless there is an additive mask.
    if additive is None:
        plain = int(torch.count_nonzero(logsumexp)) == logsumexp.numel()
    else:
        plain = math.isfinite(float(logsumexp.detach().abs().log().sum()))
    if not plain:
        empty = torch.zeros_like(logsumexp, dtype=torch.bool)
        if additive is not None:  # the kernel returns logsumexp 0.0, not -inf, for these
            empty = (additive == -torch.inf).all(-1).expand_as(empty)
        if _not_finite(query, key, rule, output, logsumexp, empty):
            return blockwise.forward(query, key, value, rule)
        logsumexp = logsumexp.masked_fill(empty, -torch.inf)
        output = output.masked_fill(empty[..., None], 0.0)
    return KernelResult(output, logsumexp, "sdpa-cpu")


def _not_finite(query: Tensor, key: Tensor, rule: ScoreRule, output: Tensor, logsumexp: Tensor, empty: Tensor) -> bool:
    """Return whether any score of an allowed key is NaN or infinite.

    empty (B, H, L): rows that mask and bias fully mask. If a bias of -inf masks a key, its score is still NaN if
    query · key is NaN, which the kernel doesn't report.
    """
    if rule.bias is not None and bool(empty.any()) and not math.isfinite(float(query.sum()) + float(key.sum())):
        return True
    zero = (logsumexp == 0) & ~output.any(-1)  # a real logsumexp is hardly ever exactly 0 with output 0
    return bool(((~logsumexp.isfinite() | zero) & ~empty).any())
