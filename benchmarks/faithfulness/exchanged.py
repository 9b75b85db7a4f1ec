"""Run many copies of a text in one batch, each with the embeddings of another word replaced."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.faithfulness.cases import Case

# Of the number of a side, its learned embeddings and the vocabulary's mean: what its copies read instead.
Exchange = Callable[[int, Float[Tensor, "L W"], Float[Tensor, " W"]], Float[Tensor, "B L W"]]


def replaced(case: Case) -> list[float]:
    """The outcome where a source's learned embeddings are the vocabulary's mean, of each source: the second truth."""

    def exchange(side: int, own: Tensor, mean: Tensor) -> Tensor:
        copies = own.repeat(len(case.sources), 1, 1)
        for n, source in enumerate(case.sources):
            if source.side == side:
                copies[n, list(source.tokens)] = mean
        return copies

    with torch.no_grad():
        return outcomes(case, len(case.sources), exchange).tolist()


def outcomes(case: Case, copies: int, exchange: Exchange) -> Float[Tensor, " B"]:
    """The outcome of each copy of the text."""
    model = case.model.model
    ids = [torch.tensor([[token.id for token in side.tokens]]).expand(copies, -1) for side in case.trace.sides]
    inputs: dict[str, Any] = {"input_ids": ids[0], "attention_mask": torch.ones_like(ids[0])}
    if len(ids) > 1:
        inputs["decoder_input_ids"] = ids[1]
    sides = count()

    def exchanged(module: Any, _args: Any, output: Tensor) -> Tensor:
        return exchange(next(sides), output[0], module.weight.mean(0))

    with ExitStack() as hooks:
        for each in {id(table): table for table in _tables(model)}.values():
            hooks.enter_context(each.register_forward_hook(exchanged))
        states = model.base_model(**inputs).last_hidden_state[:, list(case.place)]  # the head is for the place alone
    return case.read(states)


def _tables(model: Any) -> list[Any]:
    """The tables of learned embeddings: an encoder and a decoder may have their own."""
    found = [model.get_input_embeddings()]
    if getattr(model.config, "is_encoder_decoder", False):
        found += [model.get_encoder().get_input_embeddings(), model.get_decoder().get_input_embeddings()]
    return found
