"""Import submodules and names of a package when they are first used."""

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any


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


def lazy_names(
    package: str, where: Mapping[str, str], renamed: Mapping[str, tuple[str, str]] | None = None
) -> Callable[[str], Any]:
    """Make a package's `__getattr__`, which imports a name from the module that has it when it is asked for.

    where: the module of each name, or the package of a name that is a module itself. renamed: old names, each with its
    new name and the version that will not have the old one; asking for one warns of that.
    """

    def load(name: str) -> Any:
        if renamed is not None and name in renamed:
            new, version = renamed[name]
            said = f"{package}.{name} is called {package}.{new} now, and regard {version} will not have the old name"
            warnings.warn(said, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[package], new)
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(where[name])
        is_module = hasattr(home, "__path__")  # a package has no other names
        value: Any = importlib.import_module(f"{where[name]}.{name}") if is_module else getattr(home, name)
        setattr(sys.modules[package], name, value)  # so that this is asked once
        return value

    return load
