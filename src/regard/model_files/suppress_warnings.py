"""Hide log messages, warnings and progress bars of transformers, and import its models faster."""

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
    """Import `transformers.models`, and reuse the names that `import transformers` has read from its files.

    Both imports read the names in every file of about 550 folders. transformers caches only 128 folders, so the second
    import would read all of them again. regard passes it the result of the first instead. This has no effect on
    versions of transformers that read names in another way.
    """
    import transformers
    from transformers.utils import import_utils

    original = getattr(import_utils, READER, None)
    if original is None or "transformers.models" in sys.modules:
        return
    folder = Path(str(transformers.__file__)).parent / "models"

    def replacement(path: Any) -> object:
        return original(folder if Path(path) == folder / "__init__.py" else path)

    setattr(import_utils, READER, replacement)
    try:
        importlib.import_module("transformers.models")
    finally:
        setattr(import_utils, READER, original)


_lock, _open_blocks, _undo = threading.Lock(), [0], ExitStack()  # open `quiet` blocks, and how to undo them


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the libraries' progress bars, warnings and logs inside the block. Errors are still raised.

    Loggers, warning filters and progress bars belong to the process, so they stay hidden until the last thread leaves.
    """
    with _lock:
        if not _open_blocks[0]:
            for logger in map(logging.getLogger, ("transformers", "huggingface_hub")):  # setting a level takes 1 ms
                _undo.callback(vars(logger).update, handlers=logger.handlers, propagate=logger.propagate)
                vars(logger).update(handlers=[logging.NullHandler()], propagate=False)
            _undo.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        if not _open_blocks[0] and "transformers" in sys.modules:  # otherwise there are no bars
            import huggingface_hub.utils as hub
            from transformers.utils import logging as bars

            if not hub.are_progress_bars_disabled():
                _undo.callback(hub.enable_progress_bars)
            elif bars.is_progress_bar_enabled():
                _undo.callback(hub.disable_progress_bars)  # the next call enables them
            if bars.is_progress_bar_enabled():
                _undo.callback(bars.enable_progress_bar)
            bars.disable_progress_bar()
        _open_blocks[0] += 1
    try:
        yield
    finally:
        with _lock:
            _open_blocks[0] -= 1
            if not _open_blocks[0]:
                _undo.close()
