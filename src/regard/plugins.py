"""Load questions and kinds of models by name: regard's own and those of other packages.

A package declares them as entry points, in the groups `regard.questions` and `regard.sources`. pyproject.toml declares
regard's own in the same way. `OURS` repeats them: a source tree then works without installed metadata, and regard
reads the metadata of other packages only for names that aren't its own.
"""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from regard.errors import MissingPartError, first_line
from regard.lazy import import_part

T = TypeVar("T")

QUESTIONS, REQUESTS, SOURCES = "regard.questions", "regard.requests", "regard.sources"
OURS: dict[str, dict[str, str]] = {
    QUESTIONS: {  # the commands, in the order of the help: a Query, or a Verb for a command that asks none about texts
        "see": "regard.questions.see.query:SeeQuery",
        "heads": "regard.questions.queries:HeadsQuery",
        "map": "regard.questions.map.query:MapQuery",
        "steps": "regard.questions.queries:StepsQuery",
        "tokens": "regard.questions.queries:TokensQuery",
        "serve": "regard.server.verb:SERVE",
        "run": "regard.cli.run:RUN",
        "why": "regard.questions.why.query:WhyQuery",
        "attribute": "regard.questions.queries:AttributionQuery",
        "patch": "regard.questions.queries:PatchQuery",
        "generate": "regard.questions.generate.query:GenerateQuery",
        "translate": "regard.questions.queries:TranslateQuery",
        "paint": "regard.diffusion.verb:PAINT",
        "train": "regard.train.verb:TRAIN",
        "evolve": "regard.train.verb:EVOLVE",
        "embed": "regard.corpus.verb:EMBED",
        "find": "regard.corpus.verb:FIND",
        "senses": "regard.corpus.verb:SENSES",
        "shift": "regard.corpus.verb:SHIFT",
        "lesson": "regard.course.lesson:LESSON",
        "article": "regard.course.lesson:ARTICLE",
        "fetch": "regard.cli.fetch:FETCH",
        "check": "regard.verify.verb:CHECK",
    },
    REQUESTS: {"score": "regard.questions.why.query:ScoreQuery"},  # questions that only pages ask
    SOURCES: {  # a ModelKind
        "gguf": "regard.gguf.file:GGUF",
        "vision": "regard.vision.modules:VISION",
    },
}


def our(group: str, name: str) -> object:
    """Load one of regard's own questions or kinds of models. Raises MissingPartError if its part isn't installed."""
    module, _, attribute = OURS[group][name].partition(":")
    return getattr(import_part(module), attribute)


def ours(group: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Load regard's own questions or kinds of models by name (default: all). Those of missing parts are left out."""
    plugins = {}
    for name in OURS[group] if names is None else names:
        with suppress(MissingPartError):
            plugins[name] = our(group, name)
    return plugins


def others(group: str, use: Callable[[str, Any], T]) -> dict[str, T]:
    """Load the plug-ins that other packages add to a group. A broken plug-in is left out with a one-line warning.

    use: converts a plug-in's name and object to the returned value. If it raises an error, the plug-in is broken.
    """
    from importlib.metadata import entry_points

    plugins: dict[str, T] = {}
    for entry in entry_points(group=group):
        if any(entry.name in names for names in OURS.values()):
            continue
        try:
            plugins[entry.name] = use(entry.name, entry.load())
        except Exception as error:  # code of other packages may raise anything
            reason = f"{type(error).__name__}: {first_line(error)}"
            print(f"regard: warning: {entry.name!r} ({entry.value}) is left out of {group}: {reason}", file=sys.stderr)
    return plugins
