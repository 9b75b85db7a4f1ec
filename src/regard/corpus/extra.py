"""Import what the extra `corpus` brings, when it is first needed, or say how to install it."""

import importlib
from types import ModuleType

from regard.errors import RegardError


def import_from_corpus_extra(name: str) -> ModuleType:
    """Import a module of the extra `corpus`: pyarrow, duckdb, sklearn, and their parts."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(name.partition(".")[0], name.partition(".")[0])
        raise RegardError(f'{package} is not installed ({error}): pip install "regard[corpus]"') from error
