"""Which kernel computes the output, on which device, and the traps of each: all that is known of them stays here.

Every kernel gives (output, logsumexp) with logsumexp -inf and output 0 where a query may attend to nothing.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import blockwise
from regard.attention.masks import Mask
from regard.attention.tiles import Rule

SDPA_MASK_LIMIT = 1 << 22  # scores up to which a mask may be written out for a kernel that wants a tensor (16 MiB)


def attend(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: Rule,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "B H L E"], Float[Tensor, "B H L"], str]:
    """Output, logsumexp and the kernel's name. The kernel is the fastest that is right for these arguments."""
    if sdpa_cpu_fits(query, key, value, rule, dropout):
        return *sdpa_cpu(query, key, value, rule), "sdpa-cpu"
    return *blockwise.attend(query, key, value, rule, dropout), "blockwise"


def sdpa_cpu_fits(query: Tensor, key: Tensor, value: Tensor, rule: Rule, dropout: float) -> bool:
    """Whether PyTorch's fused CPU kernel gives the right answer here.

    It wants D == E, kills the process where L or S is 0, and gives no gradient to its mask.
    """
    length, size = query.shape[2], key.shape[2]
    if query.device.type != "cpu" or dropout > 0 or rule.softcap is not None or rule.sinks is not None:
        return False
    if query.shape[-1] != value.shape[-1] or 0 in query.shape or 0 in key.shape:
        return False
    if rule.bias is not None and (rule.bias.requires_grad or rule.bias.dtype != query.dtype):
        return False
    plain = rule.bias is None and (rule.mask is None or _is_causal(rule.mask, length, size))
    return plain or length * size <= SDPA_MASK_LIMIT


def sdpa_cpu(query: Tensor, key: Tensor, value: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """PyTorch's fused CPU kernel. It reads a query strided in its last dimension wrongly, so that one is copied."""
    query, key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (query, key, value))
    length, size = query.shape[2], key.shape[2]
    additive: Tensor | None = None
    allowed: Tensor | None = None
    causal = rule.mask is not None and rule.bias is None and _is_causal(rule.mask, length, size)
    if rule.mask is not None and not causal:
        allowed = rule.mask.materialise(query.shape[0], query.shape[1], length, size, query.device)
        additive = torch.zeros(allowed.shape, dtype=query.dtype).masked_fill_(~allowed, -torch.inf)
    if rule.bias is not None:
        additive = rule.bias if additive is None else additive + rule.bias
    if additive is not None:
        additive = additive.expand(-1, -1, length, size)
    output, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout_p=0.0, is_causal=causal, attn_mask=additive, scale=rule.scale
    )
    if additive is not None:  # the kernel gives 0.0, not -inf, as a wholly masked row's logsumexp
        empty = (additive == -torch.inf).all(-1)
        if bool(empty.any()):
            logsumexp = logsumexp.masked_fill(empty, -torch.inf)
            output = output.masked_fill(empty[..., None], 0.0)
    return output, logsumexp


def _is_causal(mask: Mask, length: int, size: int) -> bool:
    """Whether a mask is what the fused kernels call causal: key j <= query i, nothing else."""
    return mask.only_band and mask.low is None and mask.high == 0 and length <= size
