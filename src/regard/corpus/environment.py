"""What a store's bytes depend on besides texts and settings: the model, by a hash; versions, kernels, threads."""

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from regard.attention.kernels import matmul
from regard.errors import RegardError
from regard.models.model import Model

PACKAGES = ("regard", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def describe_store_environment() -> dict[str, str]:
    """Return the versions, and the matrix product of attention's tiles that is chosen here."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    return versions | {"tiles": matmul.product().__name__, "threads": "1", "machine": platform.machine()}


def check_store_environment(made: dict[str, str]) -> None:
    """Check that this process has the versions and the matrix product that a store was made with."""
    here = describe_store_environment()
    for name in (*PACKAGES, "machine"):
        if made.get(name) != here[name]:
            raise RegardError(
                f"the store was made with {name} {made.get(name)}, here is {here[name]}: shards would differ; "
                "give another --out, or the same versions"
            )
    if made.get("tiles") != here["tiles"]:
        raise RegardError(
            f"the store was made with the matrix product {made.get('tiles')}, here is {here['tiles']}: shards would "
            f"differ; {matmul.VARIABLE}={made.get('tiles')} goes on with it, or give another --out"
        )


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
