"""Submodules of a package, imported when they are first used: nobody waits for torch who does not need it."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType


def lazy_modules(package: str, folders: Iterable[str]) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__`, which know its submodules and import them when they are asked for.

    package, folders: its `__name__` and `__path__`.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_"))

    def load(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")  # which sets it, so that this is asked once

    return load, lambda: list(names)
