"""Measure how long a key's value is once a head has projected it: ‖W_O · value‖, weight × which is a contribution.

After Kobayashi et al. 2020, "Attention is Not Only a Weight". The projection is the captured one, and is held against
what the model computed on a few tokens before its norms are shown.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.explain.causes.contributions import adds_up
from regard.trace.attention_output import AttentionOutput
from regard.web.numbers import page_numbers_in_bits


def contribution_norms(
    weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput
) -> Float[Tensor, "H S"] | None:
    """Compute the norms of every head and key; None where the parts do not add up to what the model computed.

    They are rounded to 10 bits, 1e-3 of each: more would be most of what a short text's page has beside its vectors.
    """
    heads, _, size = weights.shape
    if not adds_up(weights, values, output):
        return None
    model = output.weight.shape[0]
    projection = output.weight.detach().double().cpu().view(model, heads, -1).transpose(0, 1)  # (H, M, E)
    own = values.detach().double().cpu()
    each = heads // len(own)
    norms = torch.empty(heads, size, dtype=torch.float32)
    for head, part in enumerate(projection):
        value = own[head // each]
        norms[head] = ((value @ (part.T @ part)) * value).sum(-1).clamp_min(0).sqrt()
    return page_numbers_in_bits(norms, 10)
