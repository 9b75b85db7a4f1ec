"""The reference: the model in float64 from its embeddings on, and how far a tool's weights are from it.

transformers computes norms of Llama's kind and the softmax in float32 even where a model is float64: both are computed
in float64 here. The angles of rotary positions are float32 in the model's own definition, and stay so.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.compare.tools import network


def write(folder: str, ids: list[int], file: Path) -> None:
    """Write the weights of the last layer, (H, L, L) in float64, into a file."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    last: list[Tensor] = []

    def attention(
        module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, **_: Any
    ) -> tuple[Tensor, None]:
        last.clear()
        groups = query.shape[1] // key.shape[1]
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
        scores = query @ key.transpose(2, 3) * scaling
        weights = (scores if mask is None else scores + mask).softmax(-1)
        last.append(weights[0])
        return (weights @ value).transpose(1, 2), None

    ALL_ATTENTION_FUNCTIONS.register("float64", attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("float64", eager_mask)
    body = network(folder, "float64").base_model.double()
    for module in body.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = lambda x, m=module: m.weight * x * (x.square().mean(-1, True) + m.variance_epsilon).rsqrt()
    body(torch.tensor([ids]))
    assert last[0].dtype == torch.float64
    torch.save(last[0], file)


def apart(weights: Tensor, file: Path) -> float:
    """The largest difference of an (H, L, L) tensor from the reference, a head at a time."""
    truth = torch.load(file, mmap=True)
    if weights.shape != truth.shape:  # a row of each head: of the last token
        truth = truth[:, -weights.shape[1] :]
    return max(float((own.double() - other).abs().max()) for own, other in zip(weights, truth, strict=True))
