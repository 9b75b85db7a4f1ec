"""Submodules of a package, imported when they are first used: nobody waits for torch who does not need it."""

import importlib
from collections.abc import Callable
from types import ModuleType


def lazy_modules(package: str, names: tuple[str, ...]) -> Callable[[str], ModuleType]:
    """Make a package's `__getattr__` that imports the submodules of these names when they are first asked for."""

    def load(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")  # which sets it, so that this is asked once

    return load
