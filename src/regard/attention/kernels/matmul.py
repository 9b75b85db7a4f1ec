"""Choose the matrix product for the CPU tiles, from oneDNN or torch's BLAS, by a table of CPUs."""

import functools
import os
import re
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError

Product = Callable[[Tensor, Tensor], Tensor]

# Speed ratio of oneDNN to torch's BLAS for the products of attention tiles, by CPU kind, MKL and oneDNN version
# (`python -m benchmarks.products` measures it). It is a fixed table, because timing at run time could choose different
# products on machines of the same kind, and so change bits of results.
SPEEDS = {
    ("AMD avx512_vp2intersect", "2024.2", "3.12"): 2.2,  # Zen 5
    ("AMD avx512_bf16", "2024.2", "3.12"): 1.1,  # Zen 4
    ("Intel amx_tile", "2024.2", "3.12"): 1.0,  # Sapphire Rapids and later
}
# Instruction sets by which the libraries choose their code, the newest first.
INSTRUCTION_SETS = ("amx_tile", "avx512_vp2intersect", "avx512_bf16", "avx512_f", "avx2")
MARGIN = 1.2  # torch's BLAS is chosen only if it is this many times as fast as oneDNN
VARIABLE = "REGARD_PRODUCT"  # overrides the table


def onednn(x: Float[Tensor, "R K"], y: Float[Tensor, "C K"]) -> Float[Tensor, "R C"]:
    """Compute x @ yᵀ with oneDNN. Make y contiguous (in either order) first: otherwise this is very slow."""
    return torch.ops.mkldnn._linear_pointwise.default(x, y, None, "none", [], "")


def packed_for_onednn(y: Float[Tensor, "C K"], rows: int) -> Tensor:
    """Return y in oneDNN's layout for products with this many rows. Pass it instead of y; it can't be sliced."""
    return torch.ops.mkldnn._reorder_linear_weight(y, rows)


def blas(x: Float[Tensor, "R K"], y: Float[Tensor, "C K"]) -> Float[Tensor, "R C"]:
    """Compute x @ yᵀ with the BLAS that torch was built with."""
    return torch.mm(x, y.t())


def product() -> Product:
    """Return the product for attention tiles, from the environment variable or else from the table."""
    name = os.environ.get(VARIABLE)
    if not name:
        return blas if speed() * MARGIN < 1 else onednn
    products = {"blas": blas} | ({"onednn": onednn} if onednn_works() else {})
    if name not in products:
        raise RegardError(f"{VARIABLE}: got {name!r}, expected {' or '.join(products)}")
    return products[name]


@functools.cache
def speed() -> float:
    """Look up the speed ratio of oneDNN to torch's BLAS on this CPU. 0 if it is unknown or oneDNN doesn't work."""
    return SPEEDS.get((cpu_kind(), *library_versions()), 0.0) if onednn_works() else 0.0


def cpu_kind() -> str:
    """Return this CPU's maker and newest instruction set, such as "AMD avx512_bf16". "" if torch can't detect it."""
    try:
        capabilities = torch.cpu.get_capabilities()
    except (AttributeError, RuntimeError):
        return ""  # an earlier torch
    maker = str(capabilities.get("cpu_name", "")).replace("(R)", "").partition(" ")[0]
    fallback = capabilities.get("architecture", "")
    return f"{maker} {next((name for name in INSTRUCTION_SETS if capabilities.get(name)), fallback)}"


def library_versions() -> tuple[str, str]:
    """Return the versions of MKL and oneDNN that torch was built with, "2024.2" and "3.12"; "" for a missing one."""
    built = torch.__config__.show()
    patterns = r"Math Kernel Library Version (\d+\.\d+)", r"MKL-DNN v(\d+\.\d+)"
    matches = [re.search(pattern, built) for pattern in patterns]
    return tuple(match[1] if match else "" for match in matches)  # type: ignore[return-value]


@functools.cache
def onednn_works() -> bool:
    """Return whether this build of torch has oneDNN's product with correct results."""
    x, y = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        forms, expected = (y, packed_for_onednn(y, 2)), blas(x, y)
        return torch.backends.mkldnn.is_available() and all(torch.equal(onednn(x, form), expected) for form in forms)
    except (AttributeError, RuntimeError):  # some builds of torch lack the operators or reject the call
        return False
