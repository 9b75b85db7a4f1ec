"""Import submodules, names of packages, optional dependencies and functions of higher modules when first used."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from regard.errors import MissingPartError, RegardError

OPTIONAL = ("corpus", "course", "diffusion", "gguf", "server", "train", "verify", "vision")
PARTS = tuple(f"regard.{name}" for name in OPTIONAL)
ABOVE: dict[str, str] = {}  # modules of functions that `regard` itself lacks, filled in by `regard/__init__.py`


def from_above(name: str) -> Any:
    """Import and return a function of a higher module, such as one that shows or saves an object of this module."""
    return getattr(import_part(ABOVE.get(name, "regard")), name)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__`, which imports each name when it is first requested, and its `__dir__`.

    The names are those that the package imports for type checkers, so its source is needed. package: its `__name__`.
    """
    source = inspect.getsource(sys.modules[package])
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    where = {alias.name: str(node.module) for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_part(where[name])
        is_module = hasattr(home, "__path__")  # from a package, only modules are imported
        value: Any = import_part(f"{where[name]}.{name}") if is_module else getattr(home, name)
        setattr(sys.modules[package], name, value)  # so that this runs once per name
        return value

    return load, lambda: sorted(where)


def import_part(name: str) -> ModuleType:
    """Import a module of regard. Raises MissingPartError if it needs an optional part that isn't installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in PARTS:
            raise
        raise MissingPartError(f"{error.name} isn't installed: this copy of regard lacks that part") from error


def import_from_corpus_extra(name: str) -> ModuleType:
    """Import a module of the extra `corpus`, such as pyarrow. If it is missing, the error names the pip command."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(name.partition(".")[0], name.partition(".")[0])
        raise RegardError(f'{package} is not installed ({error}): pip install "regard[corpus]"') from error
