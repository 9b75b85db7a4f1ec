"""Which kernel computes the output, on which device, and the traps of each: all that is known of them stays here.

Every kernel gives (output, logsumexp); where a query may attend to nothing, output 0 and the sink, or -inf without one.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import blockwise, cuda, matmul
from regard.attention.kernels.cpu import forward as cpu
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule

SDPA_MASK_LIMIT = 1 << 22  # scores up to which a mask may be written out for a kernel that wants a tensor (16 MiB)

# The CPU tiles win from about 700 × 700 scores a head on; beside slower kernels than PyTorch's they win much earlier,
# and only loading them (half a second, some seconds once after an installation) speaks against it.
CPU_QUERIES, CPU_KEYS, CPU_SCORES, CPU_SCORES_IN_ALL = 64, 256, 1 << 19, 1 << 20

# How many times as fast as the BLAS of torch oneDNN has to be for the tiles to win where PyTorch's kernel can do the
# call without writing a mask out: at 2.2 (AMD EPYC) they take half its time, at 0.9 (Intel Xeon) 1.4 to 2.3 of it.
CPU_SPEED = 1.4


class Computed(NamedTuple):
    """What a kernel leaves. normaliser: each query's (max, sum), where the kernel has them apart."""

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    kernel: str
    normaliser: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None


def attend(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "B H L E"], Float[Tensor, "B H L"], str]:
    """Output, logsumexp and the kernel's name. The kernel is the fastest that is right for these arguments."""
    return compute(query, key, value, rule, dropout)[:3]


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float = 0.0,
) -> Computed:
    """The same, with all that the kernel found on its way."""
    if query.device.type == "cuda" and (name := cuda.choose(query, key, value, rule, dropout)):
        return Computed(*cuda.attend(name, query, key, value, rule), f"{name}-cuda")
    training = wants_gradient(query, key, value, rule)
    sdpa = sdpa_cpu_fits(query, key, value, rule, dropout)
    if cpu.fits(query, key, value, rule, dropout):
        length, size, lines = query.shape[2], key.shape[2], query.shape[0] * query.shape[1]
        work = lines * length >= 4 * CPU_QUERIES * torch.get_num_threads()  # two tasks of 128 queries for each worker
        half = rule.mask is not None and _is_causal(rule.mask, length, size)
        left = length * size // (2 if half else 1)
        large = work and length >= CPU_QUERIES and size >= CPU_KEYS and left >= CPU_SCORES
        plain = rule.bias is None and (rule.mask is None or half)
        large = large and not (sdpa and plain and matmul.speed() < CPU_SPEED)
        large = large or (not sdpa and lines * length * size >= CPU_SCORES_IN_ALL)
        if large and not training:
            done = cpu.forward(query, key, value, rule)
            return Computed(done.output, done.logsumexp, "blockwise-cpu", (done.top, done.total))
        if large and not sdpa:  # where PyTorch's kernel fits, its backward outweighs what the forward would gain
            rest = replace(rule, bias=None, sinks=None)
            output, logsumexp = _CpuAttend.apply(query, key, value, rule.bias, rule.sinks, rest)
            return Computed(output, logsumexp, "blockwise-cpu")
    if sdpa:
        return Computed(*sdpa_cpu(query, key, value, rule), "sdpa-cpu")
    return Computed(*blockwise.attend(query, key, value, rule, dropout), "blockwise")


def wants_gradient(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule) -> bool:
    """Whether autograd will ask for this call's backward."""
    tensors = (query, key, value, rule.bias, rule.sinks)
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


class _CpuAttend(torch.autograd.Function):
    """The CPU forward with the backward of `blockwise`, which needs no more than output and logsumexp."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Any, sinks: Any, rule: ScoreRule
    ) -> tuple[Tensor, Tensor]:
        output, logsumexp = cpu.attend(query, key, value, replace(rule, bias=bias, sinks=sinks))
        ctx.save_for_backward(query, key, value, bias, sinks, output, logsumexp)
        ctx.rule = rule
        ctx.mark_non_differentiable(logsumexp)
        return output, logsumexp

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor, _: Any) -> Any:
        blockwise.check_once()
        query, key, value, bias, sinks, output, logsumexp = ctx.saved_tensors
        rule = replace(ctx.rule, bias=bias, sinks=sinks)
        return *blockwise.backward(query, key, value, rule, output, logsumexp, grad_output), None


def sdpa_cpu_fits(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float) -> bool:
    """Whether PyTorch's fused CPU kernel gives the right answer here.

    It wants D == E, kills the process where L or S is 0, gives no gradient to its mask, and its logsumexp of bfloat16
    and float16 is off by 5e-5.
    """
    length, size = query.shape[2], key.shape[2]
    if query.device.type != "cpu" or query.dtype not in (torch.float32, torch.float64) or dropout > 0:
        return False
    if rule.softcap is not None or rule.sinks is not None:
        return False
    if query.shape[-1] != value.shape[-1] or 0 in query.shape or 0 in key.shape:
        return False
    if rule.bias is not None and (rule.bias.requires_grad or rule.bias.dtype != query.dtype):
        return False
    plain = rule.bias is None and (rule.mask is None or _is_causal(rule.mask, length, size))
    return plain or _written(query, rule) * length * size <= SDPA_MASK_LIMIT


def _written(query: Tensor, rule: ScoreRule) -> int:
    """How many L × S matrices a mask takes that is written out: edges that some texts or heads lost give each its own.

    Masks and biases of the caller's own are not counted: they are as large as he made them.
    """
    removed = () if rule.mask is None else rule.mask.removed
    texts = query.shape[0] if any(edges.batch is not None for edges in removed) else 1
    return texts * (query.shape[1] if any(edges.heads is not None for edges in removed) else 1)


def sdpa_cpu(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule) -> tuple[Tensor, Tensor]:
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


def kernels() -> dict[str, str]:
    """The kernels by name: "available" with what each is for, or why it is not available here."""
    product = "oneDNN" if matmul.product() is matmul.onednn else "the BLAS of torch"
    size = "from about 700 x 700 unmasked scores a head"
    tiles = size if matmul.speed() >= CPU_SPEED else f"masks and rules that sdpa-cpu cannot have, {size}"
    shorter = "shorter texts" if matmul.speed() >= CPU_SPEED else "float32 and float64 (faster here than the tiles)"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    gpu = {
        "cudnn-cuda": "bfloat16 and float16, widths to 128, Hopper and later",
        "flash-cuda": "bfloat16 and float16, widths to 256",
        "efficient-cuda": "float32, as many key heads as query heads",
    }
    refused = cuda.refused()
    for name, use in gpu.items():
        why = next((told for told in refused if told.startswith(name.removesuffix("-cuda"))), None)
        state = f"not available: {why}" if why else f"available: {device}, {use}; checked before its first use"
        gpu[name] = state if device else "not available: torch finds no CUDA device"
    return gpu | {
        "blockwise-cpu": f"available: CPU, up to float32, {tiles} (by {product})",
        "sdpa-cpu": f"available: CPU, {shorter}, and float32 or float64 where gradients are wanted",
        "blockwise": "available: every device, dtype and mask",
    }
