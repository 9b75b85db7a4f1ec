"""Run many copies of a text with other learned embeddings in one batch: integrated gradients, words replaced.

The numbers are those of `regard.questions.attribution.tokens`, which runs one at a time; for short texts a batch is
sooner.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.faithfulness.cases import Case

# Of the number of a side, its learned embeddings and the vocabulary's mean: what its copies read instead.
Exchange = Callable[[int, Float[Tensor, "L W"], Float[Tensor, " W"]], Float[Tensor, "B L W"]]


def integrated_gradients(case: Case, steps: int) -> tuple[list[Float[Tensor, " S"]], float]:
    """The score of every token, side by side, and the outcome of the baseline: the vocabulary's mean at every token."""
    places, weights = np.polynomial.legendre.leggauss(steps)
    way = torch.tensor([0.0, *((places + 1) / 2)], dtype=torch.float32)[:, None, None]
    moves: list[Tensor] = []

    def between(_side: int, own: Tensor, mean: Tensor) -> Tensor:
        moves.append(own - mean)
        return mean + way * moves[-1]

    with torch.enable_grad():
        values, leaves = outcomes(case, steps + 1, between)
        slopes = torch.autograd.grad((values[1:] * torch.tensor(weights / 2)).sum(), leaves)
    scores = [(move.double() * slope.double().sum(0)).sum(-1) for move, slope in zip(moves, slopes, strict=True)]
    return scores, float(values[0].detach())


def replaced(case: Case) -> list[float]:
    """The outcome where a source's learned embeddings are the vocabulary's mean, of each source: the second truth."""

    def exchange(side: int, own: Tensor, mean: Tensor) -> Tensor:
        copies = own.repeat(len(case.sources), 1, 1)
        for n, source in enumerate(case.sources):
            if source.side == side:
                copies[n, list(source.tokens)] = mean
        return copies

    with torch.no_grad():
        return outcomes(case, len(case.sources), exchange)[0].tolist()


def outcomes(case: Case, copies: int, exchange: Exchange) -> tuple[Float[Tensor, " B"], Sequence[Tensor]]:
    """The outcome of each copy of the text, and the embeddings that the copies read, leaves of the graph."""
    model = case.model.model
    ids = [torch.tensor([[token.id for token in side.tokens]]).expand(copies, -1) for side in case.trace.sides]
    inputs: dict[str, Any] = {"input_ids": ids[0], "attention_mask": torch.ones_like(ids[0])}
    if len(ids) > 1:
        inputs["decoder_input_ids"] = ids[1]
    leaves: list[Tensor] = []

    def leaf(module: Any, _args: Any, output: Tensor) -> Tensor:
        mean = module.weight.detach().mean(0)
        leaves.append(exchange(len(leaves), output[0].detach(), mean).requires_grad_(torch.is_grad_enabled()))
        return leaves[-1]

    with ExitStack() as hooks:
        for each in {id(table): table for table in _tables(model)}.values():
            hooks.enter_context(each.register_forward_hook(leaf))
        states = model.base_model(**inputs).last_hidden_state[:, list(case.place)]  # the head is for the place alone
    return case.read(states), leaves


def _tables(model: Any) -> list[Any]:
    """The tables of learned embeddings: an encoder and a decoder may have their own."""
    found = [model.get_input_embeddings()]
    if getattr(model.config, "is_encoder_decoder", False):
        found += [model.get_encoder().get_input_embeddings(), model.get_decoder().get_input_embeddings()]
    return found
