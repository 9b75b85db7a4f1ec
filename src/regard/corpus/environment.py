"""What a store's bytes depend on beside texts, model and settings: versions, kernels, threads. Set alike in workers."""

import functools
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

from regard.attention.kernels import matmul
from regard.corpus.settings import BACKENDS
from regard.errors import RegardError

PACKAGES = ("regard", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def describe_store_environment(backend: str = "torch") -> dict[str, str]:
    """Return the versions, and the matrix products that are chosen here.

    backend: what computes the vectors, as in `regard.corpus.settings.Settings`.
    """
    found = {
        name: _installed_package_version(name) for name in (*PACKAGES, *(() if backend == "torch" else (backend,)))
    }
    return found | _chosen_matrix_products() | {"threads": "1", "machine": platform.machine()}


def check_store_environment(made: dict[str, str]) -> None:
    """Check that this process has the versions that a store was made with.

    Raises:
        RegardError: a version differs.
    """
    backends = [name for name in BACKENDS if name in made and name not in PACKAGES]
    for name in (*PACKAGES, *backends, "machine"):
        here = platform.machine() if name == "machine" else _installed_package_version(name)
        if made.get(name) != here:
            raise RegardError(
                f"the store was made with {name} {made.get(name)}, here is {here}: shards would not be alike; "
                "give another --out, or the same versions"
            )


def check_store_products(made: dict[str, str]) -> None:
    """Check that the matrix products chosen here are those that a store was made with.

    Raises:
        RegardError: one is another: the numbers would differ by rounding from shard to shard.
    """
    was, here = ([each.get(name, "none") for name in ("linear", "tiles")] for each in (made, _chosen_matrix_products()))
    if was != here:
        raise RegardError(
            f"the store was made with the matrix products {' and '.join(was)} (of linear maps and of tiles), here are "
            f"{' and '.join(here)}: shards would not be alike; {matmul.VARIABLE}={','.join(was)} goes on with it, or "
            "give another --out"
        )


def pin_store_products(made: dict[str, str]) -> None:
    """Compute with the matrix products of a store from now on, whatever would be chosen here.

    Raises:
        RegardError: this build of torch lacks one.
    """
    if not matmul.pin_matmul_product(made["linear"], tiles=made["tiles"]):
        raise RegardError(f"the store was made with the product {made['linear']}, which this build of torch lacks")


@contextmanager
def pinned_store_products(made: dict[str, str]) -> Iterator[None]:
    """Compute in one thread and with a store's products inside the block.

    Raises:
        RegardError: as `check_store_environment` and `pin_store_products`.
    """
    before = torch.get_num_threads(), os.environ.get("TOKENIZERS_PARALLELISM"), matmul.pinned_matmul_products()
    check_store_environment(made)
    pin_store_products(made)
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        if before[1] is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before[1]
        matmul.restore_matmul_products(before[2])


def _chosen_matrix_products() -> dict[str, str]:
    return {"linear": matmul.linear().__name__, "tiles": matmul.product().__name__}


@functools.cache
def _installed_package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
