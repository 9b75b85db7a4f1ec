"""Compute the states of many windows with torch in bf16: linear maps and attention under autocast, the rest in float32.

The model's own modules run, and its own attention: nothing of it is watched.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.corpus.writing.cut_windows import WindowSize
from regard.corpus.writing.plain_stack import (
    PlainStack,
    StatesReader,
    check_states,
    has_segments,
    read_in_batches,
    windows_to_compare_on,
)
from regard.errors import RegardError, first_line
from regard.models.model import Model

OPTION = "--precision bf16"
INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # as torch names what multiplies in bf16
EMULATED = "This processor has no bf16 arithmetic. torch emulates it, so float32 is faster."


def note_on_processor(model: Model) -> str:
    """Say where bf16 is no gain: on a processor that has no instructions for it; "" elsewhere, or where none knows."""
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # newer versions' alone
    known = [capabilities[name] for name in INSTRUCTIONS if name in capabilities]
    return EMULATED if model.model.device.type == "cpu" and known and not any(known) else ""


def autocast_states(model: Model, layers: Sequence[int], size: WindowSize) -> StatesReader:
    """Return what reads the states that leave some layers under autocast, as `regard.models.states` does in float32.

    size: of the windows that will be read. What runs is first compared with it, in float32.
    """
    stack = PlainStack(model, layers, causal=size.causal, option=OPTION).eval()
    sample = windows_to_compare_on(model, size, OPTION)
    segments, device = has_segments(model, sample), model.model.device

    def run(
        ids: Int[np.ndarray, "B L"], kinds: Int[np.ndarray, "B L"] | None, *, narrow: bool = True
    ) -> Float[Tensor, "B K L M"]:
        given = [torch.from_numpy(each).to(device) for each in (ids, kinds) if each is not None]
        try:
            with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=narrow):
                return torch.stack([each.float() for each in stack(*given)], 1)
        except MemoryError:
            raise
        except Exception as error:  # families raise whatever they run into, such as numbers of two types
            kind, said = type(model.model).__name__, first_line(error) or type(error).__name__
            raise RegardError(f"{OPTION}: {model.name} ({kind}) cannot be read so: {said}; leave it out") from error

    whole = read_in_batches(model, layers, lambda ids, kinds: run(ids, kinds, narrow=False), segments=segments)
    check_states(model, sample, layers, whole, OPTION)
    return read_in_batches(model, layers, run, segments=segments)
