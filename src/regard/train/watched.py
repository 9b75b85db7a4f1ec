"""A run's folder, and what it keeps of a watched sentence: found without torch."""

from pathlib import Path

from regard.errors import RegardError
from regard.files import LOCK, is_temporary

WATCH, RUN_JSON, LOSS = "watch", "run.json", "loss.png"


def check_there_is_run(folder: Path) -> None:
    """Check that there is a folder to look for a run in. Raises RegardError where there is none."""
    if not folder.is_dir():
        raise RegardError(f"no folder {str(folder)!r}: needs a run, which regard train --out writes")


def check_place_for_run(folder: Path, *, resume: bool) -> bool:
    """Check that a run can be written to a folder; return whether there is one that is to go on."""
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"--out {str(folder)!r} is a file: needs a folder's name")
    if (folder / RUN_JSON).exists():
        if not resume:
            raise RegardError(f"--out {str(folder)!r} holds a run already: go on with --resume, or name another folder")
        return True
    if folder.is_dir() and any(entry.name != LOCK and not is_temporary(entry.name) for entry in folder.iterdir()):
        raise RegardError(f"--out {str(folder)!r} is not empty and holds no run: name another folder")
    return False


def check_watched_traces(run: Path) -> list[Path]:
    """List the files of a run's watched traces, in no order. Raises RegardError where there is none."""
    files = list((run / WATCH).glob("step-*.safetensors"))
    if not files:
        raise nothing_watched(run)
    return files


def nothing_watched(run: Path) -> RegardError:
    """Make the error for a run without watched traces."""
    return RegardError(f"{str(run)!r} has no watched traces: train with --watch SENTENCE")
