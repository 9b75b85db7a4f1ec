"""Generate token by token with a `regard.Transformer` and a key/value cache."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.nn.transformer import Transformer

Choose = Callable[[Tensor], Tensor]  # logits (B, V) -> ids (B,)
OPTIONS = ("do_sample", "temperature", "top_k", "top_p")


@contextmanager
def model_in_evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Run all modules of a model in evaluation mode inside the block, and restore each module's mode afterwards."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


@dataclass(frozen=True)
class Sampling:
    """How to choose the next token: the likeliest token, or with do_sample a sampled token.

    temperature: the divisor of the logits, above 0. top_k: sample from the k likeliest tokens, 0 for all. top_p: sample
    from the likeliest tokens that together reach this probability, above 0 (Holtzman et al. 2020, "The Curious Case of
    Neural Text Degeneration"). seed: for sampling. None: use torch's global random state.
    """

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None

    def chooser(self) -> Choose:
        """Return a function that chooses ids (B,) from logits (B, V). All its calls share one random generator."""
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)

        def choose(logits: Float[Tensor, "B V"]) -> Int[Tensor, " B"]:
            if not self.do_sample:
                return logits.argmax(-1)
            shares = self._shares(logits.float().cpu())  # on the CPU, so that all devices sample the same tokens
            return torch.multinomial(shares, 1, generator=generator)[:, 0].to(logits.device)

        return choose

    def _shares(self, logits: Float[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """Return the probabilities from which tokens are sampled."""
        logits = logits / self.temperature
        if 0 < self.top_k < logits.shape[-1]:
            threshold = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < threshold, -torch.inf)
        shares = logits.softmax(-1)
        if self.top_p < 1:
            ordered, order = shares.sort(dim=-1, descending=True, stable=True)
            beyond = ordered.cumsum(-1) - ordered >= self.top_p  # tokens after top_p was reached
            shares = shares.masked_fill(torch.zeros_like(beyond).scatter(1, order, beyond), 0.0)
        return shares


@torch.no_grad()
def write_with_transformer(
    model: Transformer,
    ids: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    choose: Choose | None = None,
    end: int | None = None,
    until: Callable[[list[int]], bool] | None = None,
    context: Float[Tensor, "B S M"] | None = None,
    context_mask: Bool[Tensor, "B S"] | Int[Tensor, "B S"] | None = None,
    full_pass: Callable[[Int[Tensor, "B T"]], Float[Tensor, "B T V"]] | None = None,
) -> list[list[int]]:
    """Continue each text of a batch with a decoder. Returns the new ids, including a generated end token.

    The model runs in evaluation mode, without dropout. Its mode is restored afterwards.

    full_pass: a function that returns the logits of the texts so far. It replaces the model's cached decoding.
    """
    choose = Sampling().chooser() if choose is None else choose
    written: list[list[int]] = [[] for _ in range(ids.shape[0])]
    open_rows = set(range(ids.shape[0]))
    caches, new_ids = model.caches(), ids
    with model_in_evaluation_mode(model):
        for _ in range(max_new_tokens):
            if full_pass is not None:
                logits = full_pass(ids)
            else:
                out = model.decode(new_ids, context, context_mask=context_mask, caches=caches, only_last=True)
                assert out.logits is not None
                logits = out.logits
            new_ids = choose(logits[:, -1])[:, None]  # (B, 1)
            ids = torch.cat([ids, new_ids], 1)
            for row in tuple(open_rows):
                written[row].append(int(new_ids[row, 0]))
                if written[row][-1] == end or (until is not None and until(written[row])):
                    open_rows.discard(row)
            if not open_rows:
                break
    return written


@torch.no_grad()
def translate(
    model: Transformer,
    ids: Int[Tensor, "B S"],
    mask: Bool[Tensor, "B S"] | Int[Tensor, "B S"] | None = None,
    *,
    max_new_tokens: int,
    end: int | None,
    choose: Choose | None = None,
) -> list[list[int]]:
    """Translate a batch of padded source texts with an encoder-decoder. Returns the new ids without the start token."""
    with model_in_evaluation_mode(model):
        context = model.encode(ids, mask=mask)
    start = model.config.start
    assert start is not None
    first = torch.full((ids.shape[0], 1), start, device=ids.device)
    return write_with_transformer(
        model, first, max_new_tokens=max_new_tokens, choose=choose, end=end, context=context, context_mask=mask
    )
