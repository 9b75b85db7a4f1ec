"""Compute the states of many windows with OpenVINO: the same float32 numbers in less time, and no attention.

The model is converted once, from the module that torch would run, and reads the same batches of one length. What it
gives is compared with torch's on some text before any of it is used: a conversion is a trace of one example, and a
model that decides by its input what it computes would be converted wrongly without an error.
"""

import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

from regard.capture.build_trace import check_finite
from regard.corpus.writing.cut_windows import WindowSize, cut_texts
from regard.errors import RegardError
from regard.model_files.quiet import quiet
from regard.models.model import Model
from regard.models.states import StateBatch, Window, count_layers, read_states, window_batches_by_length

StatesReader = Callable[[Sequence[Window]], Iterator[StateBatch]]

TOLERANCE = 1e-5  # of a vector's largest number, or of 1 where that is less
# float32 throughout, also where the processor has faster, coarser products; one thread, which no core is kept for:
# several workers would be tied to the same one
OPTIONS = {
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "ACCURACY",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_NUM_THREADS": "1",
    "ENABLE_CPU_PINNING": "NO",
}
SAMPLE = (
    "The bank of the river was steep, and the path along it had been closed since March. ",
    "A woman who sold bread at the corner said that the bank across the street would open at nine; until then nobody "
    "could pay her with anything but coins. ",
    'Her brother, who was 71, laughed at this: "We have waited longer for less, and in worse weather!" ',
)


def check_openvino_installed() -> None:
    """Check that OpenVINO is there, without loading it.

    Raises:
        RegardError: it is not.
    """
    if importlib.util.find_spec("openvino") is None:
        raise RegardError('--backend openvino needs OpenVINO: pip install "regard[corpus,openvino]"')


def openvino_states(model: Model, layers: Sequence[int], size: WindowSize) -> StatesReader:
    """Convert a model, and return what reads the states that leave some layers, as `regard.models.states` does.

    size: of the windows that will be read; the comparison with torch has one as long as they can be.

    Raises:
        RegardError: OpenVINO is not installed, the model cannot be converted, or its states are not those of torch.
    """
    check_openvino_installed()
    sample = _windows_to_compare_on(model, size)
    segments = "token_type_ids" in model._session.takes and all(each.segments is not None for each in sample)
    request = _converted(model, layers, segments=segments, causal=size.causal)

    def read(windows: Sequence[Window]) -> Iterator[StateBatch]:
        for batch in window_batches_by_length([len(window.ids) for window in windows]):
            given = {"input_ids": np.array([windows[n].ids for n in batch], np.int64)}
            if segments:
                given["token_type_ids"] = np.array([windows[n].segments for n in batch], np.int64)
            try:
                found = request.infer(given, share_inputs=True, share_outputs=True)
                states = torch.from_numpy(np.stack([found[n] for n in range(len(layers))], 1))  # a copy
            except (RuntimeError, ValueError, KeyError) as error:
                raise _openvino_refused_model(
                    model, f"read {len(batch)} windows of {len(windows[batch[0]].ids)} tokens", error
                ) from error
            check_finite({layer + 1: states[:, n] for n, layer in enumerate(layers)}, model.name)
            yield StateBatch(batch, states, [])

    _compare(model, sample, layers, read)
    return read


class _Layers(nn.Module):
    """A model's stack alone, without a head, as a function of ids to the states that leave some layers."""

    def __init__(self, model: Model, layers: Sequence[int], *, masked: bool) -> None:
        super().__init__()
        self.body, self.layers, self.last = model.model.base_model, layers, count_layers(model) - 1
        self.masked = masked
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


def _converted(model: Model, layers: Sequence[int], *, segments: bool, causal: bool) -> Any:
    """A model as OpenVINO runs it, ready to be given batches."""
    own = model.model
    if not isinstance(own, transformers.PreTrainedModel):
        raise RegardError(
            f"--backend openvino: {model.name} is a {type(own).__name__}, needs a model of transformers: leave "
            "the option out"
        )
    if own.device.type != "cpu":
        raise RegardError(
            f"--backend openvino reads on the CPU, the model is on {own.device}: load it with device='cpu'"
        )
    example = {"input_ids": torch.ones(2, 8, dtype=torch.long)}
    if segments:
        example["token_type_ids"] = torch.zeros(2, 8, dtype=torch.long)
    # without a mask a causal model of transformers looks for several texts in a row, which cannot be converted
    masked = causal and "attention_mask" in model._session.takes
    try:
        with model._session.lock, quiet(), torch.no_grad(), _unreported(), _signal_stack_kept():
            openvino: Any = importlib.import_module("openvino")
            stack = _Layers(model, layers, masked=masked).eval()
            converted = openvino.convert_model(stack, example_input=example)
            return openvino.Core().compile_model(converted, "CPU", OPTIONS).create_infer_request()
    except (RegardError, MemoryError):
        raise
    except Exception as error:  # a conversion raises whatever it runs into
        raise _openvino_refused_model(model, "be converted", error) from error


@contextmanager
def _unreported() -> Iterator[None]:
    """Keep OpenVINO from sending its makers a message over the network when it is imported or converts a model.

    It sends none where the package that does it cannot be imported.
    """
    name = "openvino_telemetry"
    before: ModuleType | None = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@contextmanager
def _signal_stack_kept() -> Iterator[None]:
    """Give this thread back the memory that its signal handlers run on, which OpenVINO replaces by some of its own.

    OpenVINO frees its memory with the last model, in whichever thread that goes: Ctrl-C in this one would write there.
    """
    if os.name != "posix":
        yield
        return
    sigaltstack = ctypes.CDLL(None).sigaltstack
    before = ctypes.create_string_buffer(64)  # a stack_t, which is smaller everywhere
    known = sigaltstack(None, before) == 0
    try:
        yield
    finally:
        if known:
            sigaltstack(before, None)


def _windows_to_compare_on(model: Model, size: WindowSize) -> list[Window]:
    """Windows of real text to compare on: of several lengths, the longest that can be, and three of one length."""
    text = "".join(SAMPLE)
    once = cut_texts(model, [text], size)[0]
    if once is None:
        raise RegardError(f"--backend openvino: the tokenizer of {model.name} drops the text that it is tried on")
    many = cut_texts(model, [text * (1 + size.window // len(once.ids))], size)[0]
    assert many is not None
    shorter = [cut.windows[0] for cut in cut_texts(model, [*SAMPLE, SAMPLE[0][:8]], size) if cut is not None]
    return [many.windows[0], *[once.windows[0]] * 3, *shorter]


def _compare(model: Model, windows: Sequence[Window], layers: Sequence[int], read: StatesReader) -> None:
    """Refuse a conversion that gives other states than torch."""
    theirs, worst = _by_window(read(windows)), 0.0
    for number, expected in _by_window(read_states(model, windows, layers)).items():
        found = theirs[number]
        if found.shape != expected.shape:
            raise RegardError(
                f"--backend openvino: {model.name} gives states {tuple(found.shape)}, torch {tuple(expected.shape)}: "
                "leave the option out"
            )
        off = (found - expected).abs().amax(-1) / expected.abs().amax(-1).clamp_min(1)
        worst = max(worst, float(off.max()))
    if worst > TOLERANCE:
        raise RegardError(
            f"--backend openvino: states of {model.name} differ from torch's by {worst:.1e} of the largest number, "
            f"allowed is {TOLERANCE:.0e}: leave the option out"
        )


def _by_window(batches: Iterator[StateBatch]) -> dict[int, Tensor]:
    """The states (K, L, M) of each window, by its number."""
    return {number: batch.states[row].float() for batch in batches for row, number in enumerate(batch.numbers)}


def _openvino_refused_model(model: Model, what: str, error: Exception) -> RegardError:
    """The one line on a model that OpenVINO cannot have."""
    # OpenVINO's messages begin with the lines of its source that they come from
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Exception from")]
    lines = lines or [type(error).__name__]
    kind = type(model.model).__name__
    return RegardError(f"--backend openvino: {model.name} ({kind}) cannot {what}: {lines[0]}; leave the option out")
