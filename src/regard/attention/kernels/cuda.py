"""Call PyTorch's fused CUDA kernels, which differ in their limits and their logsumexp layout.

They are used only if every query can attend to a key, because they return different values (0, -inf or +inf) for fully
masked rows. All of them compute gradients of query, key and value.

Before a kernel's first use for a dtype, width and mask on a device, regard compares it with the blockwise kernel on a
small random case. The case is repeated with NaN in one query, where only that query's output may be NaN. A kernel that
differs or raises isn't used, and `refused` gives the reason. A query with NaN has logsumexp NaN or +inf.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import blockwise
from regard.attention.map_statistics import KernelResult
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule

HALF = (torch.float16, torch.bfloat16)
# Allowed difference from the blockwise kernel for outputs of about 1: a few roundings of the dtype. With a wrong mask
# or a wrong key head, outputs differ by tenths.
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 1e-3}  # float32 may use TF32


class Kind(NamedTuple):
    """A kind of call. A kernel is checked once for each kind."""

    kernel: str
    device: torch.device
    dtype: torch.dtype
    width: int
    causal: bool
    grouped: bool


_checked: dict[Kind, str | None] = {}  # the reason if the kernel isn't used, else None


def choose(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float) -> str | None:
    """Choose a fused kernel that supports this call. None if no kernel does.

    It is "cudnn", "flash" or "efficient". cuDNN is the fastest on Hopper and later, flash on earlier GPUs. Both support
    only half precision; efficient is for float32.
    """
    if query.device.type != "cuda" or dropout > 0 or rule.softcap is not None or rule.sinks is not None:
        return None
    length, size, width = query.shape[2], key.shape[2], query.shape[3]
    if 0 in query.shape or 0 in key.shape or value.shape[3] != width or rule.bias is not None:
        return None
    causal = rule.mask is not None
    if rule.mask is not None and not (rule.mask.is_causal and length == size):
        return None
    grouped = key.shape[1] != query.shape[1]
    for kernel in _cuda_kernel_candidates(query, grouped):
        if _why_kernel_refused(Kind(kernel, query.device, query.dtype, width, causal, grouped)) is None:
            return kernel
    return None


def forward(
    kernel: str,
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S D"],
    rule: ScoreRule,
) -> KernelResult:
    """Compute output and logsumexp with the kernel that `choose` returned."""
    query, key, value = (t if t.stride(-1) == 1 else t.contiguous() for t in (query, key, value))
    ops, causal, scale = torch.ops.aten, rule.mask is not None, rule.scale
    if kernel == "cudnn":
        output, logsumexp, *_ = ops._scaled_dot_product_cudnn_attention(
            query, key, value, None, True, 0.0, causal, False, scale=scale
        )
        logsumexp = logsumexp.reshape(query.shape[:3])  # it has a trailing axis of 1
    elif kernel == "flash":
        output, logsumexp, *_ = ops._scaled_dot_product_flash_attention(
            query, key, value, 0.0, causal, False, scale=scale
        )
    else:
        output, logsumexp, *_ = ops._scaled_dot_product_efficient_attention(
            query, key, value, None, True, 0.0, causal, scale=scale
        )
        logsumexp = logsumexp[..., : query.shape[2]]  # it is padded to a multiple of 32
    return KernelResult(output, logsumexp, f"{kernel}-cuda")


def refused() -> list[str]:
    """List the kernels that failed their check in this process, with the reasons."""
    return [f"{kind.kernel} ({kind.dtype}, width {kind.width}): {fault}" for kind, fault in _checked.items() if fault]


def _cuda_kernel_candidates(query: Tensor, grouped: bool) -> list[str]:
    """List the fused CUDA kernels that support this dtype and width, the fastest first."""
    width = query.shape[3]
    if query.dtype in HALF and width % 8 == 0 and width <= 256:
        hopper = torch.cuda.get_device_capability(query.device) >= (9, 0)
        return ["cudnn", "flash"] if hopper and width <= 128 else ["flash"]
    return ["efficient"] if query.dtype == torch.float32 and width % 4 == 0 and not grouped else []


def _why_kernel_refused(kind: Kind) -> str | None:
    """Return why a kernel isn't used for a kind of call, or None if it passed its check. The check runs once."""
    if kind not in _checked:
        _checked[kind] = _check_cuda_kernel(kind)
    return _checked[kind]


def _check_cuda_kernel(kind: Kind) -> str | None:
    """Compare a kernel with the blockwise kernel on a small random case. Returns the failure, or None if it passes."""
    generator = torch.Generator().manual_seed(0)
    heads, length = 4, 67
    shapes = ((heads, length), (heads // 2 if kind.grouped else heads, length))
    query, key, value = (
        torch.randn(1, h, n, kind.width, generator=generator).to(kind.device, kind.dtype)
        for h, n in (shapes[0], shapes[1], shapes[1])
    )
    rule = ScoreRule(kind.width**-0.5, mask=Mask(high=0) if kind.causal else None)
    try:
        with torch.no_grad():
            result = forward(kind.kernel, query, key, value, rule)
            right = blockwise.forward(query.float(), key.float(), value.float(), rule)
            query[0, 1, 5, 0] = torch.nan
            nan_rows = forward(kind.kernel, query, key, value, rule).output.isnan().any(-1)
    except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
        return f"it raises: {str(error).splitlines()[0]}"
    pairs = ((result.output, right.output), (result.logsumexp, right.logsumexp))
    difference = max(float((a.float() - b).abs().max()) for a, b in pairs)
    if difference > TOLERANCE[kind.dtype]:
        return f"it differs from the blockwise path by {difference:.1e}"
    return None if nan_rows.nonzero().tolist() == [[0, 1, 5]] else "NaN in a query is not NaN in its output"
