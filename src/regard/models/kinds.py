"""Kinds of models that `regard.load` opens, as well as folders, hub names and models of transformers and regard."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from regard import plugins
from regard.models.model import Model


class ModelKind:
    """A kind of model. Override `model`, or `file` and `opened` for files that transformers reads."""

    def model(self, source: Any, tokenizer: Any, processor: Any) -> Model | None:
        """Open a model object, a path or a name. None if it is of another kind."""

    def file(self, path: Path) -> Path | None:
        """Find the file that a path means: the path itself, or the only one in a folder. None for another kind."""

    def opened(self, path: Path) -> AbstractContextManager[Any]:
        """Open a file that `file` found, as in `regard.gguf.file.File`."""
        raise NotImplementedError


@cache
def kinds() -> list[ModelKind]:
    """List all kinds, regard's own first."""

    def checked(name: str, made: Any) -> ModelKind:
        if not isinstance(made, ModelKind):
            raise TypeError(f"needs a regard.models.kinds.ModelKind, not {made!r:.60}")
        return made

    return [*plugins.ours(plugins.SOURCES).values(), *plugins.others(plugins.SOURCES, checked).values()]


def model_of_source(source: Any, tokenizer: Any, processor: Any) -> Model | None:
    """Open a model by the first kind that knows it; None if no kind does."""
    models = (kind.model(source, tokenizer, processor) for kind in kinds())
    return next((model for model in models if model is not None), None)


def model_file(path: Path) -> tuple[Path, ModelKind] | None:
    """Find the file that a path means, and its kind."""
    return next(((file, kind) for kind in kinds() if (file := kind.file(path)) is not None), None)


@contextmanager
def opened_model_file(path: Path | str) -> Iterator[Any]:
    """Open a file of a model; give None for a folder or a hub name."""
    if not isinstance(path, Path) or not path.is_file() or (found := model_file(path)) is None:
        yield None
        return
    with found[1].opened(path) as file:
        yield file
