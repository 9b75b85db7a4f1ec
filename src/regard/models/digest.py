"""Tell models apart by a hash of what they compute with."""

import hashlib

import torch

from regard.models.model import Model


def digest_model(model: Model) -> str:
    """Hash a model's weights and its tokenizer."""
    whole = hashlib.sha256()
    for name, tensor in sorted(model.model.state_dict().items()):
        whole.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\0".encode())
        whole.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    spelled = backend.to_str() if backend is not None else repr(sorted(model.tokenizer.get_vocab().items()))
    whole.update(_without_state(spelled).encode())
    return whole.hexdigest()


def _without_state(spelled: str) -> str:
    """A tokenizer's JSON without what a call before may have left in it: truncation and padding."""
    import json

    try:
        data = json.loads(spelled)
    except ValueError:
        return spelled
    return json.dumps({name: each for name, each in data.items() if name not in ("truncation", "padding")})
