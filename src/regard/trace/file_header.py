"""Read what a file of traces says of itself, and refuse one that is none, without torch: nobody waits to be refused.

`regard.trace.file.open` refuses such files in the same words.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.checks import check_trace_file
from regard.errors import RegardError
from regard.tensor_files.description import read_description
from regard.tensor_files.header import read_header

FORMAT = "regard trace"


@contextmanager
def as_traces(file: Path) -> Iterator[None]:
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
    with as_traces(file):
        header = read_header(file)
        description, _ = read_description(header.metadata, FORMAT, header.tensors)
        return description
