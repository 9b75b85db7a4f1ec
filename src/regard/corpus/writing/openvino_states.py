"""Compute the states of many windows with OpenVINO: the same float32 numbers in less time, and no attention.

The model is converted once, from the module that torch would run, and reads the same batches of one length. What it
gives is compared with torch's on some text before any of it is used: a conversion is a trace of one example, and a
model that decides by its input what it computes would be converted wrongly without an error. In bf16 the converted
model is the one that was compared in float32.
"""

import ctypes
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.corpus.shard_reader import sha256_of_shard_file
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
from regard.fetched import cache_folder
from regard.model_files.suppress_warnings import quiet
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
NAME, WEIGHTS = "model.xml", "model.bin"  # as OpenVINO writes them, side by side
SUMS = "sha256.txt"  # of both
PART = ".part"
LEFT = 24 * 3600  # seconds after which a folder that is being written was left by a process that was killed
PACKAGES = ("openvino", "torch", "transformers", "regard")


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
        request = _compiled(model, converted, number)

        def run(ids: Int[np.ndarray, "B L"], kinds: Int[np.ndarray, "B L"] | None) -> Float[Tensor, "B K L M"]:
            given = {"input_ids": ids} | ({} if kinds is None else {"token_type_ids": kinds})
            try:
                found = request.infer(given, share_inputs=True, share_outputs=True)
                return torch.from_numpy(np.stack([found[n] for n in range(len(layers))], 1))  # a copy
            except (RuntimeError, ValueError, KeyError) as error:
                count, length = ids.shape
                raise _openvino_refused_model(model, f"read {count} windows of {length} tokens", error) from error

        return read_in_batches(model, layers, run, segments=segments)

    def checked() -> StatesReader:
        whole = reader("float32")
        check_states(model, sample, layers, whole, OPTION)
        return whole if precision == "float32" else reader(precision)

    if kept is not None and is_converted_model_whole(kept):
        try:
            with _openvino() as openvino:
                converted = openvino.Core().read_model(kept)
            return checked()
        except (RegardError, RuntimeError):  # it is another model's, such as one of a changed class: it is made again
            pass
    converted = _converted(model, stack, segments=segments)
    found = checked()
    if kept is not None:
        keep_converted_model(converted, kept)
    return found


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


def converted_models_folder() -> Path:
    """Return the folder of the converted models, in the user's cache; it may be removed at any time."""
    return cache_folder() / "openvino"


def converted_model_file(model: Model, digest: str, layers: Sequence[int], *, segments: bool, masked: bool) -> Path:
    """Return where a converted model is kept: by all that its conversion depends on.

    digest: of its weights and tokenizer. layers, segments, masked: what it was converted to give and to take.
    """
    own, versions = model.model, [version(each) for each in PACKAGES]
    parts = [digest, type(own).__qualname__, own.config.to_dict(), [*layers], segments, masked, versions]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
    return converted_models_folder() / key[:32] / NAME


def is_converted_model_whole(file: Path) -> bool:
    """Tell whether a converted model that is kept is there, and what was written."""
    try:
        return (file.parent / SUMS).read_text(encoding="utf-8") == _sums(file.parent)
    except OSError:
        return False


def keep_converted_model(converted: Any, file: Path) -> None:
    """Write a converted model where it is kept, whole or not at all; in place of one that is there.

    A cache that cannot be written keeps nothing: the model is converted again the next time.
    """
    import openvino

    folder = file.parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f".*{PART}"):
            if time.time() - left.stat().st_mtime > LEFT:
                shutil.rmtree(left, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", suffix=PART, dir=folder.parent))
        try:
            openvino.save_model(converted, str(temporary / NAME), compress_to_fp16=False)
            (temporary / SUMS).write_text(_sums(temporary), encoding="utf-8")
            if folder.exists():
                folder.rename(temporary / "before")
            temporary.rename(folder)
            shutil.rmtree(folder / "before", ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except (OSError, RuntimeError):
        return


def _sums(folder: Path) -> str:
    """The SHA-256 of a converted model's two files, a line each."""
    return "".join(f"{sha256_of_shard_file(folder / name)}  {name}\n" for name in (NAME, WEIGHTS))
