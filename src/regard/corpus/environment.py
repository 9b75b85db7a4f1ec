"""What a store's bytes depend on besides texts and settings: the model, by a hash; versions, kernels, threads."""

import functools
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

from regard.attention.kernels import matmul
from regard.errors import RegardError
from regard.models.model import Model

PACKAGES = ("regard", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def describe_store_environment() -> dict[str, str]:
    """Return the versions, and the matrix product of attention's tiles that is chosen here."""
    versions = {name: _installed_package_version(name) for name in PACKAGES}
    return versions | {"tiles": matmul.product().__name__, "threads": "1", "machine": platform.machine()}


def check_store_environment(made: dict[str, str]) -> None:
    """Check that this process has the versions that a store was made with."""
    for name in (*PACKAGES, "machine"):
        here = platform.machine() if name == "machine" else _installed_package_version(name)
        if made.get(name) != here:
            raise RegardError(
                f"the store was made with {name} {made.get(name)}, here is {here}: shards would differ; "
                "give another --out, or the same versions"
            )


def check_store_products(made: dict[str, str]) -> None:
    """Check that the matrix product chosen here is the one that a store was made with."""
    was, here = made.get("tiles"), matmul.product().__name__
    if was != here:
        raise RegardError(
            f"the store was made with the matrix product {was}, here is {here}: shards would differ; "
            f"{matmul.VARIABLE}={was} goes on with it, or give another --out"
        )


@contextmanager
def pinned_store_products(made: dict[str, str]) -> Iterator[None]:
    """Compute in one thread and with a store's product inside the block."""
    threads = torch.get_num_threads()
    check_store_environment(made)
    wanted = {"TOKENIZERS_PARALLELISM": "false", matmul.VARIABLE: made["tiles"]}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        matmul.product()
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@functools.cache
def _installed_package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def digest_model(model: Model) -> str:
    """Hash a model's weights and its tokenizer."""
    whole = hashlib.sha256()
    for name, tensor in sorted(model.model.state_dict().items()):
        whole.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\0".encode())
        whole.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    text = backend.to_str() if backend is not None else repr(sorted(model.tokenizer.get_vocab().items()))
    if backend is not None:  # truncation and padding are what a call before may have left in it
        data = {name: value for name, value in json.loads(text).items() if name not in ("truncation", "padding")}
        text = json.dumps(data)
    whole.update(text.encode())
    return whole.hexdigest()
