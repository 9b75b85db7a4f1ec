"""Choose the fastest kernel that supports a call's arguments, device and dtype."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import blockwise, cuda, matmul, sdpa_cpu, statistics
from regard.attention.kernels import cpu as compiled
from regard.attention.kernels.cpu import forward as cpu
from regard.attention.map_statistics import KernelResult, Statistics
from regard.attention.scores import ScoreRule, subtract_row_bias

# The CPU tiles are faster than PyTorch's kernel from about 700 × 700 scores per head. They beat other kernels much
# earlier, unless loading them takes longer: half a second, or some seconds after an installation.
CPU_QUERIES, CPU_KEYS, CPU_SCORES, CPU_SCORES_IN_ALL = 64, 256, 1 << 19, 1 << 20

# The smallest speed ratio of oneDNN to torch's BLAS at which the tiles beat PyTorch's kernel, if that needs no mask
# tensor. At 2.2 (AMD EPYC), the tiles take half its time; at 0.9 (Intel Xeon), 1.4 to 2.3 times its time.
CPU_SPEED = 1.4


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float = 0.0,
) -> KernelResult:
    """Compute one attention call with the fastest kernel that supports it. The output is differentiable."""
    if query.device.type == "cuda" and (name := cuda.choose(query, key, value, rule, dropout)):
        return cuda.forward(name, query, key, value, rule)
    causal = rule.mask is not None and rule.mask.is_causal and query.shape[2] <= key.shape[2]
    gradient = wants_gradient(query, key, value, rule)
    sdpa = sdpa_cpu.fits(query, key, value, rule, dropout, causal)
    if cpu.fits(query, key, value, rule, dropout) and _cpu_tiles_win(query, key, rule, causal, sdpa):
        if not gradient:
            return cpu.forward(query, key, value, rule)
        if not sdpa:  # PyTorch's faster backward outweighs the tiles' faster forward
            return blockwise.forward(query, key, value, rule, tiles=True)
    if sdpa:
        return sdpa_cpu.forward(query, key, value, rule, causal)
    return blockwise.forward(query, key, value, rule, dropout)


def compute_with_statistics(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float,
    wanted: Statistics | None,
    offset: int | None,
) -> KernelResult:
    """Compute one attention call and the requested statistics, in one pass if that is the fastest."""
    if wanted is None:
        return compute(query, key, value, rule, dropout)
    large = query.shape[:3].numel() * key.shape[2] >= statistics.CPU_SCORES
    fits = large and cpu.fits(query, key, value, rule, dropout) and not wants_gradient(query, key, value, rule)
    fits = fits and subtract_row_bias(query, key, rule).row_bias is None
    if fits and compiled.forward_statistics.fits(query, key, rule):
        computed = compiled.forward_statistics.compute(query, key, value, rule, wanted, offset)
        assert computed.statistics is not None
        if rule.sinks is None:
            return computed
        corrected = statistics.with_distances_beside_sinks(query, key, rule, computed.statistics, offset)
        return computed._replace(statistics=corrected)
    result = compute(query, key, value, rule, dropout)
    return add_statistics(query, key, rule, result, wanted, offset)


def add_statistics(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    result: KernelResult,
    wanted: Statistics,
    offset: int | None,
) -> KernelResult:
    """Compute the requested statistics in a separate pass and return the call's result with them."""
    inputs = query.detach(), key.detach(), rule.detached()
    return result._replace(statistics=statistics.compute(*inputs, wanted, offset, result.row_max_sum))


def wants_gradient(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule) -> bool:
    """Return whether any tensor of the call needs a gradient."""
    tensors = (query, key, value, rule.bias, rule.sinks)
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _cpu_tiles_win(query: Tensor, key: Tensor, rule: ScoreRule, causal: bool, sdpa: bool) -> bool:
    """Return whether the CPU tiles are the faster kernel. sdpa: whether PyTorch's kernel supports the call."""
    length, size, heads = query.shape[2], key.shape[2], query.shape[0] * query.shape[1]
    if not sdpa and heads * length * size >= CPU_SCORES_IN_ALL:
        return True
    enough_tasks = heads * length >= 4 * CPU_QUERIES * torch.get_num_threads()  # two tasks of 128 queries per worker
    allowed = length * size // (2 if causal else 1)
    if not (enough_tasks and length >= CPU_QUERIES and size >= CPU_KEYS and allowed >= CPU_SCORES):
        return False
    unmasked = rule.bias is None and (rule.mask is None or causal)
    return not (sdpa and unmasked and matmul.speed() < CPU_SPEED)


def kernels() -> dict[str, str]:
    """Describe each kernel by name: "available" and its use, or why it isn't available on this machine."""
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
        problem = next((reason for reason in refused if reason.startswith(name.removesuffix("-cuda"))), None)
        state = f"not available: {problem}" if problem else f"available: {device}, {use}; checked before its first use"
        gpu[name] = state if device else "not available: torch finds no CUDA device"
    return gpu | {
        "blockwise-cpu": f"available: CPU, up to float32, {tiles} (by {product})",
        "one-sweep-cpu": "available: CPU, up to float32, with statistics=, to some 32,000 keys a query",
        "sdpa-cpu": f"available: CPU, {shorter}, and float32 or float64 where gradients are wanted",
        "blockwise": "available: every device, dtype and mask",
    }
