"""Find the kind of a model that isn't a transformers folder: a GGUF file, a vision model, or a plugin's model."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from regard import plugins
from regard.models.model import Model


class ModelKind:
    """A kind of model for `regard.load`. Override `model`. For files that transformers reads, override the others."""

    def model(self, source: Any, tokenizer: Any, processor: Any) -> Model | None:
        """Open a model from an object, a path or a name. Return None if the model is of another kind."""

    def file(self, path: Path) -> Path | None:
        """Return the model file at a path: the path itself, the only such file in a folder, or None for other paths."""

    def opened(self, path: Path) -> AbstractContextManager[Any]:
        """Open a model file that `file` found. `regard.gguf.file.File` is an example."""
        raise NotImplementedError


@cache
def kinds() -> list[ModelKind]:
    """List all kinds of models, regard's before those of plugins."""

    def check_kind(name: str, plugin: Any) -> ModelKind:
        if not isinstance(plugin, ModelKind):
            raise TypeError(f"needs a regard.models.kinds.ModelKind, not {plugin!r:.60}")
        return plugin

    return [*plugins.ours(plugins.SOURCES).values(), *plugins.others(plugins.SOURCES, check_kind).values()]


def model_of_source(source: Any, tokenizer: Any, processor: Any) -> Model | None:
    """Open a model with the first kind that recognizes it. Return None if no kind recognizes it."""
    models = (kind.model(source, tokenizer, processor) for kind in kinds())
    return next((model for model in models if model is not None), None)


def model_file(path: Path) -> tuple[Path, ModelKind] | None:
    """Find the model file of a path, and its kind. Return None if no kind has such files."""
    return next(((file, kind) for kind in kinds() if (file := kind.file(path)) is not None), None)


@contextmanager
def opened_model_file(path: Path | str) -> Iterator[Any]:
    """Open a model file for the duration of the block. Yield None for a folder or a hub name."""
    if not isinstance(path, Path) or not path.is_file() or (match := model_file(path)) is None:
        yield None
        return
    with match[1].opened(path) as file:
        yield file
