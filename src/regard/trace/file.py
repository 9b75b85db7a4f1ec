"""Save traces to a file and open them without the model: everything that was traced, or chosen layers and heads of it.

A file is safetensors with JSON in its metadata (`regard.trace.file_format`). It is written part by part, so that a
trace of several gigabytes is not held twice; it is mapped into memory when it is opened, so that only what is looked at
is read, and checked when it is (`regard.tensor_files`).
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from regard.checks import check_path
from regard.errors import RegardError
from regard.files import whole
from regard.tensor_files.file import read_tensor_file, write
from regard.tensor_files.pieces import Pieces
from regard.trace.file_checks import check_description
from regard.trace.file_format import Choice
from regard.trace.file_header import FORMAT, check_trace_file, errors_name_trace_file
from regard.trace.file_reader import build
from regard.trace.file_writer import describe_trace_to_save
from regard.trace.trace import PairTrace, Trace

__all__ = ["open", "save"]


def save(
    traces: Trace | PairTrace | Sequence[Trace | PairTrace],
    file: str | Path,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dtype: torch.dtype | str | None = None,
    attention_outputs: bool = False,
) -> None:
    """Write one trace or several to one file that `regard.open` reads without the model, whole or not at all.

    Args:
        traces: one or several, of texts or of pairs.
        layers, heads: the numbers of those whose attention and values are saved, None for all; vectors (hidden states
            and the like) are saved of every layer.
        dtype: bfloat16, float16 or float32, for tensors that are wider; how far the weights then are from those traced
            is measured on a few rows of each map and noted in the status of the opened trace.
        attention_outputs: also save the output projection, norm and residual around attention, for contributions.

    Raises:
        RegardError: a layer or head that does not exist, another dtype, attention outputs that the trace does not hold
            or that the other choices would make useless, a number too large for dtype or none at all (NaN), a trace
            whose tensors do not fit each other, or a file that cannot be written.
    """
    many = not isinstance(traces, (Trace, PairTrace))
    each: list[Trace | PairTrace] = list(traces) if isinstance(traces, Sequence) else [traces]
    if not each:
        raise RegardError("save: given no trace, needs at least one")
    for trace in each:
        if not isinstance(trace, (Trace, PairTrace)):
            windows = ", or its .windows" if type(trace).__name__ == "WindowedTrace" else ""
            raise RegardError(f"save: given {type(trace).__name__}, needs a trace or several{windows}")
    check_path("save", file)
    choice = Choice.of(layers, heads, dtype, attention_outputs)
    pieces = Pieces(choice.dtype)
    description = {
        "many": many,
        "traces": [describe_trace_to_save(trace, choice, f"{n}.", pieces) for n, trace in enumerate(each)],
    }
    check_description(description, pieces.shapes())  # as `open` will
    with whole(file) as temporary:
        write(temporary, FORMAT, description, pieces.ordered())


def open(  # noqa: A001 (regard.open is its name)
    file: str | Path, *, verify: bool = False
) -> Trace | PairTrace | list[Trace | PairTrace]:
    """Read what `save` wrote, a trace or a list of them as it was saved, without the model, onto the CPU.

    The file's description is checked as a whole, but its tensors are mapped, not read: each is read when it is looked
    at, held against its digest first, and its memory is the system's to take back. Meanwhile the file may be removed or
    saved anew (on Windows neither), but not written into. verify: read and check all tensors now.

    Raises:
        RegardError: there is no such file, it is no trace, is incomplete or damaged, or is of another version. Where a
            tensor is first looked at: it is damaged, or holds what is no number.
    """
    check_path("open", file)
    path = Path(file)
    check_trace_file(path)
    with errors_name_trace_file(path):
        opened = read_tensor_file(path, FORMAT)
        check_description(opened.description, opened.tensors)
        traces = [build(each, opened) for each in opened.description["traces"]]
    if verify:
        opened.verify()
    return traces if opened.description["many"] else traces[0]
