"""Run a model's stack as its makers wrote it, without watching it: what autocast runs.

What comes of it is compared with what `regard.models.states` reads on some text before any of it is used.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.capture.build_trace import check_finite
from regard.corpus.writing.cut_windows import WindowSize, cut_texts
from regard.errors import RegardError, first_line
from regard.models.model import Model
from regard.models.states import StateBatch, Window, count_layers, read_states, window_batches_by_length

StatesReader = Callable[[Sequence[Window]], Iterator[StateBatch]]
# ids (B, L), and segments (B, L) of a model that takes some, to the states (B, K, L, M)
Run = Callable[[Int[np.ndarray, "B L"], Int[np.ndarray, "B L"] | None], Float[Tensor, "B K L M"]]

TOLERANCE = 1e-5  # of a vector's largest number, or of 1 where that is less
SAMPLE = (
    "The bank of the river was steep, and the path along it had been closed since March. ",
    "A woman who sold bread at the corner said that the bank across the street would open at nine; until then nobody "
    "could pay her with anything but coins. ",
    'Her brother, who was 71, laughed at this: "We have waited longer for less, and in worse weather!" ',
)
OPTION = "--precision bf16"
INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # as torch names what multiplies in bf16
EMULATED = "This processor has no bf16 arithmetic. torch emulates it, so float32 is faster."


class PlainStack(nn.Module):
    """A model's stack alone, without a head, as a function of ids to the states that leave some layers."""

    def __init__(self, model: Model, layers: Sequence[int], *, causal: bool, option: str) -> None:
        """Take a model's stack.

        layers: whose states are wanted. causal: whether tokens see only what precedes them. option: what asked for it,
        for the message.
        """
        super().__init__()
        own = model.model
        if not isinstance(own, transformers.PreTrainedModel):
            raise RegardError(
                f"{option}: {model.name} is a {type(own).__name__}, needs a model of transformers: leave the option out"
            )
        self.body, self.layers, self.last = own.base_model, layers, count_layers(model) - 1
        self.masked = causal and "attention_mask" in model._session.takes
        self.options: dict[str, Any] = {"output_hidden_states": any(layer < self.last for layer in layers)}
        if "use_cache" in model._session.takes:
            self.options["use_cache"] = False

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the states (B, L, M) of each of the layers; of the last one after a final norm."""
        given = {"input_ids": input_ids} | ({} if token_type_ids is None else {"token_type_ids": token_type_ids})
        if self.masked:
            given["attention_mask"] = torch.ones_like(input_ids)
        found = self.body(**given, **self.options)
        return tuple(
            found.last_hidden_state if layer == self.last else found.hidden_states[layer + 1] for layer in self.layers
        )


def read_in_batches(model: Model, layers: Sequence[int], run: Run, *, segments: bool) -> StatesReader:
    """Return what reads windows, with their segments or without, by `run` in batches of one length."""

    def read(windows: Sequence[Window]) -> Iterator[StateBatch]:
        for batch in window_batches_by_length([len(window.ids) for window in windows]):
            ids = np.array([windows[n].ids for n in batch], np.int64)
            states = run(ids, np.array([windows[n].segments for n in batch], np.int64) if segments else None)
            check_finite({layer + 1: states[:, n] for n, layer in enumerate(layers)}, model.name)
            yield StateBatch(batch, states, [])

    return read


def has_segments(model: Model, windows: Sequence[Window]) -> bool:
    """Tell whether a model takes segments, and its tokenizer gives some."""
    return "token_type_ids" in model._session.takes and all(each.segments is not None for each in windows)


def windows_to_compare_on(model: Model, size: WindowSize, option: str) -> list[Window]:
    """Cut windows of real text to compare on: of several lengths, the longest that can be, and three of one length."""
    text = "".join(SAMPLE)
    once = cut_texts(model, [text], size)[0]
    if once is None:
        raise RegardError(f"{option}: the tokenizer of {model.name} drops the text that it is tried on")
    many = cut_texts(model, [text * (1 + size.window // len(once.ids))], size)[0]
    assert many is not None
    shorter = [cut.windows[0] for cut in cut_texts(model, [*SAMPLE, SAMPLE[0][:8]], size) if cut is not None]
    return [many.windows[0], *[once.windows[0]] * 3, *shorter]


def check_states(model: Model, windows: Sequence[Window], layers: Sequence[int], read: StatesReader, by: str) -> None:
    """Check that a reader gives the states that `regard.models.states` reads. by: its option, for the message."""
    theirs, worst = states_by_window(read(windows)), 0.0
    for number, expected in states_by_window(read_states(model, windows, layers)).items():
        found = theirs[number]
        if found.shape != expected.shape:
            raise RegardError(
                f"{by}: {model.name} gives states {tuple(found.shape)}, torch {tuple(expected.shape)}: "
                "leave the option out"
            )
        off = (found - expected).abs().amax(-1) / expected.abs().amax(-1).clamp_min(1)
        worst = max(worst, float(off.max()))
    if worst > TOLERANCE:
        raise RegardError(
            f"{by}: states of {model.name} differ from torch's by {worst:.1e} of the largest number, "
            f"allowed is {TOLERANCE:.0e}: leave the option out"
        )


def states_by_window(batches: Iterator[StateBatch]) -> dict[int, Float[Tensor, "K L M"]]:
    """Gather the states (K, L, M) of each window, by its number."""
    return {number: batch.states[row].float() for batch in batches for row, number in enumerate(batch.numbers)}


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
