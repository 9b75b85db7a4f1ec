"""What a run keeps of a watched sentence: where it is, found without torch."""

from pathlib import Path

from regard.errors import RegardError

WATCH = "watch"


def check_watched(run: Path) -> list[Path]:
    """List the files of a run's watched traces, in no order.

    Raises:
        RegardError: there is none.
    """
    files = list((run / WATCH).glob("step-*.safetensors"))
    if not files:
        raise nothing_watched(run)
    return files


def nothing_watched(run: Path) -> RegardError:
    """Make the error for a run without watched traces."""
    return RegardError(f"{str(run)!r} has no watched traces: train with --watch SENTENCE")
