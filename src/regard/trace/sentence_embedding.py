"""Pool the contextual embeddings of a text's tokens into one vector, the sentence embedding, as its model says.

With x_0 … x_{L-1} the contextual embeddings of all tokens, special ones included:

    mean                    Σ x_i / L                      Reimers & Gurevych 2019, "Sentence-BERT"
    mean_sqrt_len_tokens    Σ x_i / √L
    weightedmean            Σ (i + 1) x_i / Σ (i + 1)      Muennighoff 2022, "SGPT"
    max                     the largest of each component
    cls, lasttoken          x_0, x_{L-1}

Several are joined, one behind the other. Where the model normalises, the vector is divided by its length. Which of
these a model wants is in its folder (`regard.model_files.pooling`).
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.errors import RegardError
from regard.model_files.pooling import Pooling
from regard.text.tokens import shortened


def pool(vectors: Float[Tensor, "L K"], pooling: Pooling) -> Float[Tensor, " P"]:
    """Pool the vectors of a text's tokens: P is K for each of the modes. Sums are in float32 or better."""
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    joined = torch.cat([_POOLED[mode](wide) for mode in pooling.modes])
    return (F.normalize(joined, dim=0) if pooling.normalise else joined).to(vectors.dtype)


def check_pooling(pooling: Pooling, name: str, text: str | None = None) -> None:
    """Check that it is known how a model pools, and that a text is what the model would read.

    Raises:
        RegardError: it is not known, with the reason; the text does not begin with the model's prompt, or has capitals
            where the model wants lower case.
    """
    if pooling.unknown:
        raise RegardError(f"embedding: how {name} pools is not known: {pooling.unknown}")
    if text is not None and not text.startswith(pooling.prompt):
        raise RegardError(f"embedding: texts of {name} begin with {pooling.prompt!r}, given {shortened(text)}")
    if text is not None and pooling.lower_case and text != text.lower():
        raise RegardError(f"embedding: {name} reads texts in lower case, given {shortened(text)}: give text.lower()")


def _position_weighted_mean(vectors: Float[Tensor, "L K"]) -> Float[Tensor, " K"]:
    weights = torch.arange(1, len(vectors) + 1, dtype=vectors.dtype, device=vectors.device)
    return weights @ vectors / weights.sum()


_POOLED = {
    "cls": lambda x: x[0],
    "max": lambda x: x.amax(0),
    "mean": lambda x: x.mean(0),
    "mean_sqrt_len_tokens": lambda x: x.sum(0) / len(x) ** 0.5,
    "weightedmean": _position_weighted_mean,
    "lasttoken": lambda x: x[-1],
}
