"""Keep log messages, warnings and progress bars of transformers off the terminal, and import its models faster."""

import importlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

READER = "create_import_structure_from_path"


def import_models() -> None:
    """Import `transformers.models` with what `import transformers` has read of its files already.

    Both read every file of some 550 folders for the names in it, and 128 folders are what transformers remembers,
    so that the second reads all of them again. Here it is handed what the first remembers of them as a whole; a
    version of transformers that reads them in another way is left to do so.
    """
    import transformers
    from transformers.utils import import_utils

    read = getattr(import_utils, READER, None)
    if read is None or "transformers.models" in sys.modules:
        return
    folder = Path(str(transformers.__file__)).parent / "models"

    def once(path: Any) -> Any:
        return read(folder if Path(path) == folder / "__init__.py" else path)

    setattr(import_utils, READER, once)
    try:
        importlib.import_module("transformers.models")
    finally:
        setattr(import_utils, READER, read)


_lock, _inside, _changes = threading.Lock(), [0], ExitStack()  # how many calls are quiet now, and how to undo it


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and advice off the terminal; errors still arrive as errors.

    Loggers, warning filters and bars belong to the process, so it is quiet until the last thread leaves.
    """
    with _lock:
        if not _inside[0]:
            for logger in map(logging.getLogger, ("transformers", "huggingface_hub")):  # to set a level takes 1 ms
                _changes.callback(vars(logger).update, handlers=logger.handlers, propagate=logger.propagate)
                vars(logger).update(handlers=[logging.NullHandler()], propagate=False)
            _changes.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        if not _inside[0] and "transformers" in sys.modules:  # else nothing draws bars
            import huggingface_hub.utils as hub
            from transformers.utils import logging as bars

            if not hub.are_progress_bars_disabled():
                _changes.callback(hub.enable_progress_bars)
            elif bars.is_progress_bar_enabled():
                _changes.callback(hub.disable_progress_bars)  # which the next one would enable
            if bars.is_progress_bar_enabled():
                _changes.callback(bars.enable_progress_bar)
            bars.disable_progress_bar()
        _inside[0] += 1
    try:
        yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                _changes.close()
