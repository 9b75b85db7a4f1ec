"""Compute the states of many windows with OpenVINO: the same float32 numbers in less time, and no attention.

The model is converted once, from the module that torch would run, and reads the same batches of one length. What it
gives is compared with torch's on some text before any of it is used: a conversion is a trace of one example, and a
model that decides by its input what it computes would be converted wrongly without an error. In bf16 the converted
model is the one that was compared in float32.
"""

import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.corpus.writing.converted_models import converted_model_file, is_converted_model_whole, keep_converted_model
from regard.corpus.writing.cut_windows import WindowSize
from regard.corpus.writing.plain_stack import (
    PlainStack,
    StatesReader,
    check_states,
    has_segments,
    read_in_batches,
    windows_to_compare_on,
)
from regard.errors import RegardError
from regard.model_files.quiet import quiet
from regard.models.model import Model

OPTION = "--backend openvino"
# one thread, which no core is kept for: several workers would be tied to the same one
OPTIONS = {
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_NUM_THREADS": "1",
    "ENABLE_CPU_PINNING": "NO",
}
PRECISIONS = {  # float32 throughout, also where the processor has faster, coarser products
    "float32": {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"},
    "bf16": {"INFERENCE_PRECISION_HINT": "bf16", "EXECUTION_MODE_HINT": "PERFORMANCE"},
}


def check_openvino_installed() -> None:
    """Check that OpenVINO is there, without loading it."""
    if importlib.util.find_spec("openvino") is None:
        raise RegardError(f'{OPTION} needs OpenVINO: pip install "regard[corpus,openvino]"')


def openvino_states(
    model: Model, layers: Sequence[int], size: WindowSize, *, precision: str = "float32", digest: str = ""
) -> StatesReader:
    """Convert a model, and return what reads the states that leave some layers, as `regard.models.states` does."""
    check_openvino_installed()
    own = model.model
    stack = PlainStack(model, layers, causal=size.causal, option=OPTION).eval()
    if own.device.type != "cpu":
        raise RegardError(f"{OPTION} reads on the CPU, the model is on {own.device}: load it with device='cpu'")
    sample = windows_to_compare_on(model, size, OPTION)
    segments = has_segments(model, sample)
    kept = None
    if digest:
        kept = converted_model_file(model, digest, layers, segments=segments, masked=stack.masked)
    converted = None

    def reader(number: str) -> StatesReader:
        run = _Running(model, _compiled(model, converted, number), len(layers))
        return read_in_batches(model, layers, run, segments=segments)

    def checked() -> StatesReader:
        whole = reader("float32")
        check_states(model, sample, layers, whole, OPTION)
        return whole if precision == "float32" else reader(precision)

    if kept is not None and is_converted_model_whole(kept):
        try:
            converted = _read(kept)
            return checked()
        except (RegardError, RuntimeError):  # it is another model's, such as one of a changed class: it is made again
            pass
    converted = _converted(model, stack, segments=segments)
    found = checked()
    if kept is not None:
        keep_converted_model(converted, kept)
    return found


class _Running:
    """A converted model that is given batches."""

    def __init__(self, model: Model, request: Any, layers: int) -> None:
        self._model, self._request, self._layers = model, request, layers

    def __call__(
        self, ids: Int[np.ndarray, "B L"], segments: Int[np.ndarray, "B L"] | None
    ) -> Float[Tensor, "B K L M"]:
        given = {"input_ids": ids} | ({} if segments is None else {"token_type_ids": segments})
        try:
            found = self._request.infer(given, share_inputs=True, share_outputs=True)
            return torch.from_numpy(np.stack([found[n] for n in range(self._layers)], 1))  # a copy
        except (RuntimeError, ValueError, KeyError) as error:
            count, size = ids.shape
            raise _openvino_refused_model(self._model, f"read {count} windows of {size} tokens", error) from error


def _converted(model: Model, stack: PlainStack, *, segments: bool) -> Any:
    """A model in OpenVINO's own form."""
    example = {"input_ids": torch.ones(2, 8, dtype=torch.long)}
    if segments:
        example["token_type_ids"] = torch.zeros(2, 8, dtype=torch.long)
    try:
        with quiet(), torch.no_grad(), _openvino() as openvino:
            return openvino.convert_model(stack, example_input=example)
    except (RegardError, MemoryError):
        raise
    except Exception as error:  # a conversion raises whatever it runs into
        raise _openvino_refused_model(model, "be converted", error) from error


def _read(file: Path) -> Any:
    """A model in OpenVINO's own form, from its file."""
    with _openvino() as openvino:
        return openvino.Core().read_model(file)


def _compiled(model: Model, converted: Any, precision: str) -> Any:
    """A converted model as OpenVINO runs it here, ready to be given batches."""
    with _openvino() as openvino:
        core = openvino.Core()
        known = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        if precision == "bf16" and "BF16" not in known:  # OpenVINO would compute in float32 and say nothing
            raise RegardError(
                f"--precision bf16: this processor has no bf16 arithmetic (OpenVINO lists {', '.join(known)}): leave "
                "the option out"
            )
        try:
            return core.compile_model(converted, "CPU", OPTIONS | PRECISIONS[precision]).create_infer_request()
        except RuntimeError as error:
            raise _openvino_refused_model(model, "be compiled", error) from error


@contextmanager
def _openvino() -> Iterator[Any]:
    """OpenVINO, which inside the block sends nothing, and leaves this thread the memory of its signal handlers."""
    with _unreported(), _signal_stack_kept():
        yield importlib.import_module("openvino")


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
        sys.modules.pop(name, None)
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


def _openvino_refused_model(model: Model, what: str, error: Exception) -> RegardError:
    """The one line on a model that OpenVINO cannot have."""
    # OpenVINO's messages begin with the lines of its source that they come from
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Exception from")]
    lines = lines or [type(error).__name__]
    kind = type(model.model).__name__
    return RegardError(f"{OPTION}: {model.name} ({kind}) cannot {what}: {lines[0]}; leave the option out")
