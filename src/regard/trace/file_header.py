"""Read what a file of traces says of itself, and refuse one that is none, without torch: nobody waits to be refused.

`regard.trace.file.open` refuses such files in the same words.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.tensor_files.description import read_description
from regard.tensor_files.header import read_safetensors_header

FORMAT = "regard trace"
DTYPES = ("bfloat16", "float16", "float32")
HALF_PRECISION = ("bfloat16", "float16")


@contextmanager
def errors_name_trace_file(file: Path) -> Iterator[None]:
    """Name the file in what goes wrong while its traces are read in the block.

    Raises:
        RegardError: the file system refuses, or the file is no trace file, is incomplete or damaged.
    """
    try:
        yield
    except OSError as error:
        raise RegardError(f"cannot read {str(file)!r}: {error.strerror or error}") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RegardError(f"{str(file)!r} is no whole trace file: {reason}") from error


def read_traces_header(file: Path) -> dict[str, Any]:
    """Read the description of a file of traces, unchecked but for its digest: "many" and "traces".

    Raises:
        RegardError: there is no such file, it is no trace file, is cut short, or is of another version.
    """
    check_trace_file(file)
    with errors_name_trace_file(file):
        header = read_safetensors_header(file)
        description, _ = read_description(header.metadata, FORMAT, header.tensors)
        return description


def check_trace_file(file: Path) -> None:
    """Check that there is a file to read traces from.

    Raises:
        RegardError: there is none, or a folder in its place.
    """
    if file.is_dir():
        raise RegardError(f"{str(file)!r} is a folder, needs a file that regard.save wrote")
    if not file.exists():
        raise RegardError(f"no trace file {str(file)!r}")


def check_saving(dtype: str | None, attention_outputs: bool, heads: Collection[int] | None) -> None:
    """Check which parts of a trace are to be saved, and in which dtype. heads: those to save, None for all.

    Raises:
        RegardError: another dtype, or choices that exclude each other.
    """
    if dtype is not None and dtype not in DTYPES:
        raise RegardError(f"dtype: given {dtype!r}, needs {', '.join(DTYPES)}; without it, that of the trace stays")
    if attention_outputs and heads is not None:
        raise RegardError(
            "attention outputs with chosen heads: contributions add up over all heads only; leave out one of them"
        )
    if attention_outputs and dtype in HALF_PRECISION:
        raise RegardError(
            f"attention outputs with dtype {dtype}: contributions add up to 1e-5 only in the dtype that was traced; "
            "leave out one of them"
        )
