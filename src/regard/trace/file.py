"""Traces as files: everything that was traced, or chosen layers and heads of it, read again without the model.

A file is safetensors with JSON in its metadata, under "regard". It is written tensor by tensor, so that a capture of
several gigabytes is not held twice, and mapped into memory when it is opened, so that only what is looked at is read,
and checked when it is: see `regard.tensor_files`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regard.errors import RegardError
from regard.files import whole
from regard.tensor_files import exactly, read, typed, write
from regard.trace.file_choice import Choice
from regard.trace.file_reader import rebuild
from regard.trace.file_tensors import Pieces
from regard.trace.file_writer import describe
from regard.trace.trace import PairTrace, Trace

__all__ = ["open", "save"]

FORMAT = "regard trace"


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

    layers, heads: the numbers of those whose attention and values are saved, None for all; vectors (states and the
    like) are saved of every layer. dtype: bfloat16, float16 or float32, for tensors that are wider; how far the weights
    then are from those traced is measured on a few rows of each map and noted in the status of the opened trace.
    blocks: also what stands around attention (output projection, norm, residual), for contributions.

    Raises:
        RegardError: a layer or head that does not exist, another dtype, blocks that the trace does not hold or that
            the other choices would make useless, a number too large for dtype or none at all (NaN), or a file that
            cannot be written.
    """
    many = not isinstance(traces, (Trace, PairTrace))
    each = [traces] if isinstance(traces, (Trace, PairTrace)) else list(traces)
    if not each:
        raise RegardError("save: given no trace, needs at least one")
    choice = Choice.of(layers, heads, dtype, attention_outputs)
    pieces = Pieces(choice.dtype)
    described = [describe(trace, choice, f"{n}.", pieces) for n, trace in enumerate(each)]
    shapes = pieces.shapes()
    for one in json.loads(json.dumps(described)):  # what is written will open: the same checks, before any work is done
        rebuild(one, shapes)
    with whole(file) as temporary:
        write(temporary, FORMAT, {"many": many, "traces": described}, pieces.ordered())


def open(file: str | Path, *, verify: bool = False) -> Any:  # noqa: A001 (regard.open is its name)
    """Read what `save` wrote, a trace or a list of them as it was saved, without the model, onto the CPU.

    The file's description is checked as a whole, but its tensors are mapped, not read: each is read when it is looked
    at, held against its digest first, and its memory is the system's to take back. Meanwhile the file may be removed or
    saved anew (on Windows neither), but not written into. verify: read and check all tensors now.

    Raises:
        RegardError: there is no such file, it is no trace, is cut short or damaged, or is of another version. Where a
            tensor is first looked at: it is damaged, or holds what is no number.
    """
    path = Path(file)
    if path.is_dir():
        raise RegardError(f"{str(path)!r} is a folder, needed is a file that regard.save wrote")
    if not path.exists():
        raise RegardError(f"no trace file {str(path)!r}")
    try:
        opened = read(path, FORMAT)
        told = exactly("its description", opened.description, ("many", "traces"))
        each = typed("traces", told["traces"], list)
        if not each:
            raise RegardError("it holds no trace")
        if not typed("many", told["many"], bool) and len(each) > 1:
            raise RegardError(f"it holds {len(each)} traces where one is described")
        traces = [rebuild(one, opened.tensors, opened) for one in each]
        opened.check_used()
    except OSError as error:
        raise RegardError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RegardError(f"{str(path)!r} is no whole trace file: {reason}") from error
    if verify:
        opened.verify()
    return traces if told["many"] else traces[0]
