"""Record the embeddings that a model sums before its first layer: token, position and segment embeddings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.capture.state import ModuleIndex, of_transformers

POSITIONAL = ("position", "wpe", "pos_emb")
FITS = 1e-5  # largest error of an accepted fit, relative to the largest input, in float32
UNITS = 2  # the same limit in half precision, in units of its eps


@dataclass
class EmbeddingParts:
    """The embedding parts of a batch, each (B, L, W), where W is the width of their sum. None for missing parts.

    input: the model's own sum, as it enters the first norm or layer.
    The parts are scaled as in the model.
    """

    token_embeddings: Float[Tensor, "B L W"] | None = None
    position_embeddings: Float[Tensor, "B L W"] | None = None
    segment: Float[Tensor, "B L W"] | None = None
    input: Float[Tensor, "B L W"] | None = None
    scales: dict[str, float] = field(default_factory=dict)
    _difference: float | None = field(default=None, repr=False)

    @property
    def named(self) -> dict[str, Tensor]:
        """Return the embedding parts that the model has, by name."""
        parts = {name: getattr(self, name) for name in ("token_embeddings", "position_embeddings", "segment")}
        return {name: part for name, part in parts.items() if part is not None}

    def difference(self) -> float | None:
        """Return the largest absolute difference between the sum of the parts and the input; None without an input."""
        if self.input is None or self.token_embeddings is None:
            return None
        if self._difference is None:  # computed once for all texts of a batch
            total, *others = self.named.values()
            for part in others:
                total = total + part
            self._difference = float((total - self.input).abs_().max())
        return self._difference

    def scale(self) -> None:
        """Scale each embedding part as the model does, if a fit of the parts to the input is exact."""
        difference = self.difference()
        if difference is None or self.input is None:
            return
        fits = max(FITS, UNITS * torch.finfo(self.input.dtype).eps if self.input.dtype.itemsize < 4 else 0.0)
        if difference <= fits * float(self.input.abs().max()):
            return
        columns = torch.stack([part.double().flatten() for part in self.named.values()], 1)
        target = self.input.double().flatten()
        fit = torch.linalg.lstsq(columns, target).solution
        if float((columns @ fit - target).abs().max()) <= fits * float(target.abs().max()):
            for (name, part), factor in zip(self.named.items(), fit.tolist(), strict=True):
                setattr(self, name, part * factor)
                self.scales[name] = factor
            self._difference = None


@contextmanager
def record_embeddings(index: ModuleIndex, ids: Sequence[Int[Tensor, "B _"]]) -> Iterator[list[EmbeddingParts]]:
    """Record the embedding parts of a forward pass, one group per tensor of token ids, in order of use.

    Token embeddings are the outputs of a table for the token ids. Other tables, and leaf modules named embeddings, are
    included if they run before the first norm and have the same width. They are position embeddings if their name says
    so or their indices increase by 1, else segment embeddings. The hooks are removed after the block.
    """
    watch = _EmbeddingWatch(ids)
    tables, ends = index.once(_embedding_modules)
    hooks = [module.register_forward_hook(partial(watch.looked_up, name)) for name, module in tables]
    hooks += [module.register_forward_pre_hook(watch.close, with_kwargs=True) for module in ends]
    try:
        yield watch.groups
    finally:
        for hook in hooks:
            hook.remove()
    for group in watch.groups:
        group.scale()


def _embedding_modules(model: nn.Module) -> tuple[list[tuple[str, nn.Module]], list[nn.Module]]:
    """Find the named modules that may output a part, and the modules that may receive the sum of the parts."""
    tables, ends = [], []
    for name, module in model.named_modules():
        kind = type(module).__name__.lower()
        leaf = next(module.children(), None) is None
        if isinstance(module, nn.Embedding) or (leaf and "embedding" in kind and "rotary" not in kind):
            tables.append((name.lower(), module))
        elif "norm" in kind or name.rpartition(".")[2].isdigit():  # a norm, or the first layer of a list
            ends.append(module)
    return tables, ends


@dataclass
class _EmbeddingWatch:
    """Hooks of embedding modules and of modules that may receive the sum. groups: one per tensor of ids.

    group: the current group, until its sum is seen. waiting: parts seen before the token look-up of their group.
    """

    ids: Sequence[Int[Tensor, "B _"]]
    groups: list[EmbeddingParts] = field(default_factory=list)
    group: EmbeddingParts | None = None
    waiting: list[tuple[str, Tensor]] = field(default_factory=list)

    def looked_up(self, name: str, _module: nn.Module, args: Any, output: Any) -> None:
        if not isinstance(output, Tensor) or not output.is_floating_point() or output.ndim < 2:
            return
        index = args[0] if args and isinstance(args[0], Tensor) and not args[0].is_floating_point() else None
        first = index if self.group is None else None
        if first is not None and any(first.shape == ids.shape and torch.equal(first, ids) for ids in self.ids):
            self.group = EmbeddingParts(token_embeddings=output.detach())
            self.groups.append(self.group)
        else:
            positional = any(word in name for word in POSITIONAL)
            if not positional and index is not None and index.ndim and index.shape[-1] > 1:
                positional = bool((index.diff(dim=-1) == 1).all())  # consecutive indices are positions
            self.waiting.append(("position_embeddings" if positional else "segment", output.detach()))
        learned = None if self.group is None else self.group.token_embeddings
        if learned is not None:
            for kind, part in self.waiting:
                if part.shape[-2:] == learned.shape[-2:] and getattr(self.group, kind) is None:
                    setattr(self.group, kind, part.expand(learned.shape))
            self.waiting.clear()

    def close(self, _module: nn.Module, args: Any, kwargs: Any) -> None:
        if self.group is None or self.group.token_embeddings is None:
            return
        for argument in (*args, *kwargs.values()):
            if isinstance(argument, Tensor) and argument.shape == self.group.token_embeddings.shape:
                self.group.input, self.group = argument.detach(), None
                return


def most_positions_of_model(model: Any) -> int | None:
    """Return the largest number of tokens that a model has positions for, or None without a limit.

    Tables with a padding position (as in RoBERTa) number tokens from the position after it, so they have fewer.
    """
    others: tuple[str, ...] = ()  # paths of submodels for images or sound, which don't read the ids
    with suppress(NotImplementedError):  # models for only images or sound have no token embeddings
        table = model.get_input_embeddings()
        inside = {p: m for p, m in model.named_modules() if p and of_transformers(m, "PreTrainedModel")}
        others = tuple(f"{path}." for path, m in inside.items() if all(part is not table for part in m.modules()))
    tables = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in model.named_modules()
        if type(module) is nn.Embedding or "Positional" in type(module).__name__
        if isinstance(module, nn.Embedding) and any(word in name.lower() for word in POSITIONAL)
        if not name.startswith(others)
    ]
    configured = getattr(model.config, "max_position_embeddings", None)
    limits = [n for n in (*tables, configured) if isinstance(n, int) and n > 0]
    return min(limits, default=None)
