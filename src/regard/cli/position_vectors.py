"""The vectors of positions that `regard positions` shows: of a formula, or of a model's own table."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.cli.early_checks import no_table
from regard.cli.start import load_model
from regard.errors import RegardError
from regard.explain.vectors.positions import encoding
from regard.memory import require_memory

LENGTH, WIDTH = 100, 64  # positions and components where no number is given


def position_formula(kind: str, length: int | None, width: int | None) -> Float[Tensor, "N L W"]:
    """What a formula gives, as `regard.explain.vectors.positions.encoding` does.

    Raises:
        RegardError: it does not fit in memory.
    """
    rows, across = LENGTH if length is None else length, WIDTH if width is None else width
    need = 8 * rows * (8 * rows if kind == "alibi" else 4 * across)  # of 8 heads
    require_memory(need, torch.device("cpu"), f"a picture of {rows} positions", "a smaller --length or --width")
    return encoding(kind, rows, across)


def learned_positions(
    model: str | None, length: int | None, width: int | None
) -> tuple[Float[Tensor, "1 length width"], str]:
    """A model's own table, as it is added to a text of that many tokens; and " of " the model's name.

    Raises:
        RegardError: the model reads pairs, adds no positions, or has fewer of them, or of components, than asked for.
    """
    opened = load_model(model)  # torch is here already, transformers not: a formula does not wait for it
    filler = getattr(opened.tokenizer, "pad_token_id", None) or 0  # padding has no position of its own in some models
    if opened.pairs:
        raise no_table(opened.name)
    asked = min(LENGTH, opened.limit or LENGTH) if length is None else length
    if opened.limit is not None and asked > opened.limit:
        raise RegardError(f"--length: given {asked}, {opened.name} has {opened.limit} positions")
    trace = opened.trace(ids=[filler + 1] * asked)
    table = trace.positional
    if table is None:
        raise RegardError(
            f"--kind learned: {opened.name} adds no positions to its input, rotary ones work in attention"
        )
    if width is not None and width > table.shape[1]:
        raise RegardError(f"--width: given {width}, {opened.name} has {table.shape[1]} components")
    return table[None, :, :width], f" of {opened.name}"
