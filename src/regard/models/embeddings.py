"""What a model adds up before its first layer, found by what the parts are: learned, positional, segment embeddings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

POSITIONAL = ("position", "wpe", "pos_emb")
SEGMENT = ("token_type", "segment", "type_emb")


@dataclass
class Parts:
    """The parts of a batch, (B, L, W) each at the width they are added up in; None for what a model does not have.

    input: their sum as the model itself has it, where it enters the first norm.
    """

    learned: Float[Tensor, "B L W"] | None = None
    positional: Float[Tensor, "B L W"] | None = None
    segment: Float[Tensor, "B L W"] | None = None
    input: Float[Tensor, "B L W"] | None = None

    def difference(self) -> float | None:
        """Largest absolute difference between the sum of the parts and the input; None where there is no input."""
        if self.input is None or self.learned is None:
            return None
        total = self.learned
        for part in (self.positional, self.segment):
            total = total if part is None else total + part
        return float((total - self.input).abs().max()) if total.shape == self.input.shape else None


@contextmanager
def embedding_parts(model: Any) -> Iterator[Parts]:
    """Watch a forward pass for the embedding parts. Nothing of the model is changed; its hooks are taken off after.

    The learned embedding is what the model's own input table gives. Beside it count the tables looked up before the
    first norm at the same width: by their names they are positional or segment embeddings.
    """
    parts = Parts()
    table = model.get_input_embeddings()
    handles = []

    def looked_up(name: str) -> Any:
        def hook(module: nn.Module, _args: Any, output: Tensor) -> None:
            if parts.input is not None or not isinstance(output, Tensor):
                return
            if module is table and parts.learned is None:
                parts.learned = output.detach()
            elif module is table:  # GPT-2 looks its segments up in the same table
                parts.segment = output.detach()
            elif any(word in name for word in POSITIONAL):
                parts.positional = output.detach()
            elif any(word in name for word in SEGMENT):
                parts.segment = output.detach()

        return hook

    def before_norm(_module: nn.Module, args: Any) -> None:
        if parts.input is None and parts.learned is not None and args and args[0].shape == parts.learned.shape:
            parts.input = args[0].detach()

    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            handles.append(module.register_forward_hook(looked_up(name.lower())))
        elif "norm" in type(module).__name__.lower():
            handles.append(module.register_forward_pre_hook(before_norm))
    try:
        yield parts
    finally:
        for handle in handles:
            handle.remove()
    for name in ("positional", "segment"):
        part = getattr(parts, name)
        if part is not None and parts.learned is not None:
            fits = part.shape[-2:] == parts.learned.shape[-2:]
            setattr(parts, name, part.expand(parts.learned.shape) if fits else None)


def position_limit(model: Any) -> int | None:
    """The most tokens a model has positions for, None where it has no such limit.

    Tables that keep a padding position (RoBERTa's kind) number real tokens after it, so they hold fewer.
    """
    tables = [
        module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) and any(word in name.lower() for word in POSITIONAL)
    ]
    told = getattr(model.config, "max_position_embeddings", None)
    limits = [n for n in (*tables, told) if isinstance(n, int) and n > 0]
    return min(limits, default=None)
