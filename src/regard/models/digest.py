"""Tell models apart by a hash of what they compute with."""

import hashlib
import json

import torch

from regard.models.model import Model


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
