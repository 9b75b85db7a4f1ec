"""Pool the contextual embeddings of a text's tokens into one vector, the sentence embedding, as its model says.

With x_0 … x_{L-1} the contextual embeddings of all tokens, special ones included:

    mean                    Σ x_i / L                      Reimers & Gurevych 2019, "Sentence-BERT"
    mean_sqrt_len_tokens    Σ x_i / √L
    weightedmean            Σ (i + 1) x_i / Σ (i + 1)      Muennighoff 2022, "SGPT"
    max                     the largest of each component
    cls, lasttoken          x_0, x_{L-1}

Several are joined, one behind the other. The result goes through the model's dense layers, activation(W x + b), where
it has some; where the model normalises, the vector is divided by its length. Where a model's prompt is left out, i runs
over the tokens behind it. Which of these a model wants is in its folder (`regard.model_files.pooling`).
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.errors import RegardError
from regard.model_files.pooling import Dense, Pooling
from regard.text.tokens import count_prompt_tokens, shortened


def pool(vectors: Float[Tensor, "L K"], pooling: Pooling) -> Float[Tensor, " P"]:
    """Pool the vectors of a text's tokens: P is K for each of the modes, or as wide as the last dense layer.

    Sums are in float32 or better.
    """
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    if pooling.left_out >= len(wide):
        raise RegardError(f"embedding: the prompt takes all {len(wide)} tokens, nothing is left to be pooled")
    joined = torch.cat([_POOLED[mode](wide, pooling.left_out) for mode in pooling.modes])
    for layer in pooling.dense:
        joined = _through_dense(joined, layer)
    return (F.normalize(joined, dim=0) if pooling.normalise else joined).to(vectors.dtype)


def prompted(pooling: Pooling, prompt: str | None, prompt_name: str | None) -> str:
    """Choose the prompt that texts begin with: one that is given, one of the model's by its name, or its default."""
    if prompt is not None and prompt_name is not None:
        raise RegardError("embedding: given a prompt and a prompt_name, needs one of them")
    if prompt_name is not None and prompt_name not in pooling.prompts:
        known = ", ".join(map(repr, pooling.prompts)) or "none"
        raise RegardError(f"embedding: there is no prompt of the name {prompt_name!r}, the model's folder has {known}")
    if prompt is not None and not isinstance(prompt, str):
        raise RegardError(f"embedding: prompt: given {type(prompt).__name__}, needs to be a string")
    return prompt if prompt is not None else pooling.prompt if prompt_name is None else pooling.prompts[prompt_name]


def pooling_behind_prompt(pooling: Pooling, prompt: str, tokenizer: Any) -> Pooling:
    """Say how the texts that begin with a prompt are pooled."""
    left_out = 0 if pooling.include_prompt else count_prompt_tokens(tokenizer, prompt)
    return replace(pooling, prompt=prompt, left_out=left_out)


def check_pooling(pooling: Pooling, name: str, text: str | None = None) -> None:
    """Check that it is known how a model pools, and that a text is what the model would read."""
    if pooling.unknown:
        raise RegardError(f"embedding: how {name} pools is not known: {pooling.unknown}")
    if text is not None and not text.startswith(pooling.prompt):
        raise RegardError(f"embedding: texts of {name} begin with {pooling.prompt!r}, given {shortened(text)}")
    if text is not None and pooling.lower_case and text != text.lower():
        raise RegardError(f"embedding: {name} reads texts in lower case, given {shortened(text)}: give text.lower()")


def _through_dense(vector: Float[Tensor, " I"], layer: Dense) -> Float[Tensor, " O"]:
    weight, bias = layer.weight.to(vector), None if layer.bias is None else layer.bias.to(vector)
    if weight.shape[1] != len(vector):
        raise RegardError(
            f"embedding: a Dense takes vectors of {weight.shape[1]} numbers, those pooled have {len(vector)}"
        )
    made = getattr(nn, layer.activation)()(F.linear(vector, weight, bias))
    if isinstance(layer.residual, Tensor):
        return made + layer.residual.to(vector) @ vector
    return made + vector if layer.residual else made


def _position_weighted_mean(vectors: Float[Tensor, "L K"], n: int) -> Float[Tensor, " K"]:
    weights = torch.arange(1, len(vectors) + 1, dtype=vectors.dtype, device=vectors.device)[n:]
    return weights @ vectors[n:] / weights.sum()


# Of vectors x without the first n of them.
_POOLED = {
    "cls": lambda x, n: x[n],
    "max": lambda x, n: x[n:].amax(0),
    "mean": lambda x, n: x[n:].mean(0),
    "mean_sqrt_len_tokens": lambda x, n: x[n:].sum(0) / (len(x) - n) ** 0.5,
    "weightedmean": _position_weighted_mean,
    "lasttoken": lambda x, n: x[-1],
}
