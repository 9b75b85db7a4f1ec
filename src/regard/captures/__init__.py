"""Traces as files: everything that was traced, or chosen layers and heads of it, read again without the model.

A file is safetensors with JSON in its metadata, under "regard". It is written tensor by tensor, so that a capture of
several gigabytes is not held twice, and mapped into memory when it is opened, so that only what is looked at is read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from regard.captures.choice import Choice
from regard.captures.describe import describe
from regard.captures.pieces import Pieces, why_unreadable, write
from regard.captures.rebuild import rebuild
from regard.captures.typed import typed
from regard.captures.version1 import renewed
from regard.errors import RegardError
from regard.files import whole
from regard.trace import PairTrace, Trace

__all__ = ["open", "save"]

FORMAT, VERSION = "regard trace", 2


def save(
    traces: Trace | PairTrace | Sequence[Trace | PairTrace],
    file: str | Path,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    dtype: torch.dtype | str | None = None,
    blocks: bool = False,
) -> None:
    """Write one trace or several to one file that `regard.open` reads without the model, whole or not at all.

    layers, heads: the numbers of those whose attention and values are saved, None for all; vectors (states and the
    like) are saved of every layer. dtype: bfloat16, float16 or float32, for tensors that are wider; how far the weights
    then are from those traced is measured on a few rows of each map and noted in the status of the opened trace.
    blocks: also what stands around attention (output projection, norm, residual), for contributions.

    Raises:
        RegardError: a layer or head that does not exist, another dtype, blocks that the trace does not hold or that
            the other choices would make useless, a number too large for dtype, or a file that cannot be written.
    """
    many = not isinstance(traces, (Trace, PairTrace))
    each = [traces] if isinstance(traces, (Trace, PairTrace)) else list(traces)
    if not each:
        raise RegardError("save: given no trace, needs at least one")
    choice = Choice.of(layers, heads, dtype, blocks)
    pieces = Pieces(choice.dtype)
    described = [describe(trace, choice, f"{n}.", pieces) for n, trace in enumerate(each)]
    header = {"format": FORMAT, "version": VERSION, "many": many, "traces": described}
    told = json.dumps(header)
    shapes = pieces.shapes()
    for one in json.loads(told)["traces"]:  # what is written will open: the same checks, before any work is done
        rebuild(one, shapes)
    with whole(file) as temporary:
        write(pieces, {"regard": told}, temporary)


def open(file: str | Path) -> Any:  # noqa: A001 (regard.open is its name)
    """Read what `save` wrote, a trace or a list of them as it was saved, without the model, onto the CPU.

    The file is checked as a whole, but its tensors are mapped, not read: each is read when it is looked at, and its
    memory is the system's to take back. Meanwhile the file may be removed or saved anew (on Windows neither), but not
    written into.

    Raises:
        RegardError: there is no such file, it is no trace, is cut short or damaged, or is of a newer version.
    """
    path = Path(file)
    if path.is_dir():
        raise RegardError(f"{str(path)!r} is a folder, needed is a file that regard.save wrote")
    if not path.exists():
        raise RegardError(f"no trace file {str(path)!r}")
    try:
        with safe_open(path, framework="pt") as opened:
            header = _header(path, opened.metadata() or {})
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no mapping)
        traces = [rebuild(each, tensors) for each in header["traces"]]
        return traces if header["many"] else traces[0]
    except OSError as error:
        raise RegardError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except SafetensorError as error:
        raise RegardError(f"{str(path)!r} is no whole trace file: {why_unreadable(path, error)}") from error
    except RecursionError as error:
        raise RegardError(f"{str(path)!r} is no whole trace file: its description is nested too deeply") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, RegardError) and str(path) in str(error):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, KeyError):
            reason = f"{reason} is missing"
        raise RegardError(f"{str(path)!r} is no whole trace file: {reason}") from error


def _header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    """What a file says about itself, as the newest version says it."""
    if "regard.attention_map" in metadata:
        raise RegardError(f"{str(path)!r} holds one attention map and no trace: regard.AttentionMap.load reads it")
    if "regard" not in metadata:
        raise RegardError(f"{str(path)!r} is a safetensors file, but no trace that regard saved")
    header = typed("its description", json.loads(metadata["regard"]), dict)
    if header["format"] != FORMAT:
        raise RegardError(f"{str(path)!r} holds a {header['format']!r}, needed is a {FORMAT!r}")
    if typed("version", header["version"], int) < 1:
        raise RegardError(f"{str(path)!r} has format version {header['version']}, there are 1 to {VERSION}")
    if header["version"] > VERSION:
        raise RegardError(
            f"{str(path)!r} has format version {header['version']}, this regard reads up to {VERSION}: update it"
        )
    if not typed("traces", header["traces"], list):
        raise RegardError(f"{str(path)!r} holds no trace")
    if not typed("many", header["many"], bool) and len(header["traces"]) > 1:
        raise RegardError(f"{str(path)!r} holds {len(header['traces'])} traces where one is described")
    if header["version"] == 1:
        header["traces"] = [renewed(each, f"{n}.") for n, each in enumerate(header["traces"])]
    return header
