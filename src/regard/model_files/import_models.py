"""Import transformers' package of models without reading all of its files twice."""

import importlib
import sys
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
